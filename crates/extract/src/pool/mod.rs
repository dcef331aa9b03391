//! Who reads the next file: a pool of caged workers, reused, replaced where one dies.
//!
//! It keeps these: a file is lost with its own worker only; a file that killed one is tried once more, in a new worker
//! while no other file is read (so that a machine short of memory is not taken for a bad file); no worker outlives the
//! pool or the process; what a worker writes to standard error is looked at for the cause of its death and dropped.

mod process;
mod verdict;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock, mpsc};
use std::thread::JoinHandle;

pub(crate) use process::Recipe;
use process::{End, Worker};

use crate::{ExternalReaders, Job, Outcome, external};

/// How to run workers.
#[derive(Debug, Clone)]
pub struct PoolConfig {
    /// The program that calls [`crate::worker_main`]: the `bastion` binary itself.
    pub worker: PathBuf,
    /// Arguments that make it do so.
    pub worker_args: Vec<OsString>,
    /// Files read at the same time; 0 counts as 1.
    pub workers: usize,
    /// The owner chose to read files without a cage.
    pub uncaged: bool,
    /// Programs for what the built-in readers can't read.
    pub external: ExternalReaders,
}

/// The machine can't read files. Ends the stage.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// The worker program could not be started.
    #[error("the extract worker {} could not be started: {source}", worker.display())]
    Spawn {
        /// The program.
        worker: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The worker started and could not be caged.
    #[error("the extract worker could not be caged: {layer} is missing ({cause}); {mend}, or give --uncaged")]
    Uncaged {
        /// The layer that is missing.
        layer: String,
        /// Why.
        cause: String,
        /// What the owner can do.
        mend: String,
    },
    /// The program started is not a worker of this version.
    #[error("{} does not answer as an extract worker of this version: was it replaced while the sweep ran?", worker.display())]
    NotAWorker {
        /// The program.
        worker: PathBuf,
    },
    /// A pipe to a worker could not be used.
    #[error("the pipe to an extract worker failed: {source}")]
    Pipe {
        /// The system's answer.
        #[source]
        source: std::io::Error,
    },
}

/// Caged workers, ready for files.
#[derive(Debug)]
pub struct Pool {
    external: ExternalReaders,
    recipe: Recipe,
    idle: Mutex<Idle>,
    returned: Condvar,
    /// Held shared while a file is read, and exclusively for a second try.
    alone: RwLock<()>,
    nursery: Nursery,
}

#[derive(Debug)]
struct Idle {
    workers: Vec<Worker>,
    /// Workers that may still be taken or started.
    free: usize,
}

impl Pool {
    /// Starts one worker, so that a machine without a program or a cage is known at once.
    pub fn new(config: PoolConfig) -> Result<Self, PoolError> {
        let PoolConfig { worker, worker_args, workers, uncaged, external } = config;
        let recipe = Recipe { program: worker, args: worker_args, uncaged };
        let nursery = Nursery::new(recipe.clone())?;
        let first = nursery.start()?;
        Ok(Self {
            external,
            recipe,
            idle: Mutex::new(Idle { workers: vec![first], free: workers.max(1) }),
            returned: Condvar::new(),
            alone: RwLock::new(()),
            nursery,
        })
    }

    /// Reads one file. Blocks until a worker is free and has answered; may be called from many threads.
    pub fn extract(&self, job: Job<'_>) -> Result<Outcome, PoolError> {
        let _place = self.take_place();
        let outcome = self.with_built_in_readers(&job)?;
        let reread = |job: &Job<'_>| self.with_built_in_readers(job).ok();
        Ok(external::fill(&self.external, &self.recipe, &job, outcome, &reread))
    }

    fn with_built_in_readers(&self, job: &Job<'_>) -> Result<Outcome, PoolError> {
        let first = {
            let _shared = self.alone.read().unwrap_or_else(PoisonError::into_inner);
            self.attempt(job, true)?
        };
        match first {
            End::Answered(outcome) => Ok(outcome),
            End::Died(death) if !death.worth_another_try(&job.limits) => Ok(death.verdict(&job.limits)),
            End::Died(_) => {
                let _exclusive = self.alone.write().unwrap_or_else(PoisonError::into_inner);
                match self.attempt(job, false)? {
                    End::Answered(outcome) => Ok(outcome),
                    End::Died(death) => Ok(death.verdict(&job.limits)),
                }
            }
        }
    }

    fn attempt(&self, job: &Job<'_>, may_reuse: bool) -> Result<End, PoolError> {
        let idle = if may_reuse { self.lock().workers.pop() } else { None };
        let mut worker = match idle {
            Some(worker) => worker,
            None => self.nursery.start()?,
        };
        let end = worker.read(job)?;
        if matches!(end, End::Answered(_)) && !worker.worn_out() {
            self.lock().workers.push(worker);
        }
        Ok(end)
    }

    fn take_place(&self) -> Place<'_> {
        let mut idle = self.lock();
        while idle.free == 0 {
            idle = self.returned.wait(idle).unwrap_or_else(PoisonError::into_inner);
        }
        idle.free -= 1;
        Place { pool: self }
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to use one worker; given back when dropped.
struct Place<'a> {
    pool: &'a Pool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.pool.lock().free += 1;
        self.pool.returned.notify_one();
    }
}

/// A thread that starts workers and does nothing else. The kernel kills a worker when the *thread* that started it
/// ends (prctl(2), `PR_SET_PDEATHSIG`), and callers' threads come and go; this one lives as long as the pool.
#[derive(Debug)]
struct Nursery {
    orders: Option<mpsc::Sender<mpsc::Sender<Result<Worker, PoolError>>>>,
    thread: Option<JoinHandle<()>>,
    program: PathBuf,
}

impl Nursery {
    fn new(recipe: Recipe) -> Result<Self, PoolError> {
        let program = recipe.program.clone();
        let (orders, inbox) = mpsc::channel::<mpsc::Sender<Result<Worker, PoolError>>>();
        let thread = std::thread::Builder::new()
            .name("extract-nursery".to_owned())
            .spawn(move || {
                for order in inbox {
                    // Whoever ordered may be gone; the worker then ends with its pipes.
                    let _ = order.send(Worker::start(&recipe));
                }
            })
            .map_err(|source| PoolError::Spawn { worker: program.clone(), source })?;
        Ok(Self { orders: Some(orders), thread: Some(thread), program })
    }

    fn start(&self) -> Result<Worker, PoolError> {
        let gone = || PoolError::NotAWorker { worker: self.program.clone() };
        let (order, delivery) = mpsc::channel();
        self.orders.as_ref().ok_or_else(gone)?.send(order).map_err(|_| gone())?;
        delivery.recv().map_err(|_| gone())?
    }
}

impl Drop for Nursery {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
