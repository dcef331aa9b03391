//! One request from its head to its answer: policy, identity, route and method, body, operation, audit. In this order.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bastion_host::clock::{Clock, rfc3339_millis};
use bastion_trust::{Admitted, LivePolicy, Refused, Standing};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

use crate::answer::{Answer, Denial};
use crate::audit::{AuditLog, AuditRow};
use crate::http::{BodyError, Connection, Head, Method, ReadError};
use crate::notice::Notices;
use crate::operation::{Facts, Operations, Question};
use crate::rate::RateLimiter;
use crate::route::{Role, Route};
use crate::session::Session;
use crate::wire::v1::{CardKind, HealthAnswer};

/// Searches that run at once; the rest wait for so long.
const SEARCHES: usize = 32;
const SEARCH_WAIT: Duration = Duration::from_secs(30);
/// One who asks too often waits so long for each 429, so that asking on gains nothing.
const TOO_OFTEN: Duration = Duration::from_millis(100);
/// Characters of a path that is no route of ours, in the audit.
const UNKNOWN_PATH_CHARS: usize = 64;

/// Answers requests under one manifest.
pub(crate) struct Service {
    policy: LivePolicy,
    clock: Arc<dyn Clock>,
    audit: AuditLog,
    operations: Operations,
    limiter: RateLimiter,
    searches: Semaphore,
    notices: Notices,
    /// The agent's id as it was last known, for `/health` while the manifest can't be read.
    id: Mutex<Option<String>>,
}

/// A request is answered by this, or there is nobody to answer.
type Answered = Result<Answer, ReadError>;

/// What was found out about a request before its body is read.
struct Judged {
    admitted: Arc<Admitted>,
    role: Role,
}

/// What came of a request besides its answer.
#[derive(Default)]
struct Record {
    op: Option<&'static str>,
    path: Option<String>,
    facts: Facts,
    bypassed: Option<String>,
    /// Whether the connection stands behind the request's body.
    body_read: bool,
}

impl Service {
    pub(crate) fn new(
        policy: LivePolicy,
        clock: Arc<dyn Clock>,
        audit: AuditLog,
        operations: Operations,
        notices: Notices,
    ) -> Self {
        let id = policy.current().ok().map(|admitted| admitted.manifest().id.to_string());
        Self {
            policy,
            clock,
            audit,
            operations,
            limiter: RateLimiter::default(),
            searches: Semaphore::new(SEARCHES),
            notices,
            id: Mutex::new(id),
        }
    }

    /// Answers one peer's requests until either side has enough.
    pub(crate) async fn converse<S>(self: Arc<Self>, mut connection: Connection<S>, mut session: Session)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        loop {
            let head = match connection.head().await {
                Ok(head) => head,
                Err(ReadError::Gone) => return connection.close().await,
                Err(ReadError::Refused(error)) => {
                    self.refuse_malformed(&mut connection, &mut session, error).await;
                    break;
                }
            };
            let mut record = Record::default();
            let Ok(answer) = self.request(&mut connection, &mut session, &head, &mut record).await else {
                return connection.close().await;
            };
            // a body that nobody read stands between this request and the next
            let passed = record.body_read || connection.discard_body(&head);
            let answer = self.recorded(answer, &session, record);
            if answer.status == 429 {
                sleep(TOO_OFTEN).await;
            }
            let keep_alive = passed && head.keep_alive && !connection.is_stopping();
            let message = answer.message(&http_date(self.clock.now()), keep_alive);
            if connection.write(&message).await.is_err() {
                return;
            }
            if !keep_alive {
                break;
            }
        }
        connection.end().await;
    }

    /// Makes all audited lines durable.
    pub(crate) fn sync_audit(&self) {
        if let Err(error) = self.audit.sync() {
            self.notices.caused(&error.to_string());
        }
    }

    async fn refuse_malformed<S>(&self, connection: &mut Connection<S>, session: &mut Session, error: BodyError)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let now = self.clock.now();
        let _ = session.judge(self.policy.gate(), None, now); // for the name in the audit
        let answer = self.recorded(Denial::from(error).into(), session, Record::default());
        let _ = connection.write(&answer.message(&http_date(now), false)).await;
    }

    async fn request<S>(
        self: &Arc<Self>,
        connection: &mut Connection<S>,
        session: &mut Session,
        head: &Head,
        record: &mut Record,
    ) -> Answered
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let route = Route::of(&head.path);
        record.op = route.map(Route::op);
        record.path = Some(match route {
            Some(_) => head.path.clone(),
            None => head.path.chars().take(UNKNOWN_PATH_CHARS).collect(),
        });
        let policy = self.policy.current();
        if let Ok(admitted) = &policy
            && let Standing::Bypassed { reason } = admitted.standing()
        {
            record.bypassed = Some(reason.clone());
        }
        // before anything else, so that the audit has a name also where nothing is served
        let identity = self.identify(session, &policy);
        if route == Some(Route::Health) {
            return Ok(self.health(session, identity, head, &policy).unwrap_or_else(Answer::from));
        }
        let judged = match self.judge(session, identity, policy).and_then(|judged| judged.permit(route)) {
            Ok(judged) => judged,
            Err(denial) => return Ok(denial.into()),
        };
        let Some(route) = route else { return Ok(Denial::NoRoute.into()) };
        let (question, waited) = match self.question(connection, head, route, record).await {
            Ok(question) => question,
            Err(Ok(denial)) => return Ok(denial.into()),
            Err(Err(gone)) => return Err(gone),
        };
        let judged = if waited {
            // the body took its time, in which a grant may have ended
            let policy = self.policy.current();
            let identity = self.identify(session, &policy);
            match self.judge_uncounted(session, identity, policy).and_then(|judged| judged.permit(Some(route))) {
                Ok(judged) => judged,
                Err(denial) => return Ok(denial.into()),
            }
        } else {
            judged
        };
        let mut facts = question.facts();
        let answer = self.operate(question, judged, &mut facts).await;
        record.facts = facts;
        Ok(answer.unwrap_or_else(Answer::from))
    }

    /// Whether the peer's certificate is good now.
    fn identify(&self, session: &mut Session, policy: &Result<Arc<Admitted>, Arc<Refused>>) -> Result<(), Denial> {
        let admitted = policy.as_deref().ok();
        session.judge(self.policy.gate(), admitted, self.clock.now()).map_err(|fault| Denial::Certificate(fault.code))
    }

    /// Policy, identity and how often: what comes before the route.
    fn judge(
        &self,
        session: &Session,
        identity: Result<(), Denial>,
        policy: Result<Arc<Admitted>, Arc<Refused>>,
    ) -> Result<Judged, Denial> {
        let judged = self.judge_uncounted(session, identity, policy)?;
        if judged.role != Role::Owner {
            self.count(session)?;
        }
        Ok(judged)
    }

    fn judge_uncounted(
        &self,
        session: &Session,
        identity: Result<(), Denial>,
        policy: Result<Arc<Admitted>, Arc<Refused>>,
    ) -> Result<Judged, Denial> {
        let admitted = policy.map_err(|refused| Denial::Policy(refused.code))?;
        identity?;
        let role = Role::of(admitted.manifest(), session.cn(), self.clock.now());
        Ok(Judged { admitted, role })
    }

    /// Those without a name share one bucket.
    fn count(&self, session: &Session) -> Result<(), Denial> {
        let who = session.cn().map_or("", |cn| cn.as_str());
        if self.limiter.admits(who, Instant::now().into_std()) { Ok(()) } else { Err(Denial::TooManyRequests) }
    }

    /// For any peer that chained, even where nothing else is served.
    fn health(
        &self,
        session: &Session,
        identity: Result<(), Denial>,
        head: &Head,
        policy: &Result<Arc<Admitted>, Arc<Refused>>,
    ) -> Result<Answer, Denial> {
        identity?;
        let now = self.clock.now();
        let is_owner =
            policy.as_ref().is_ok_and(|admitted| Role::of(admitted.manifest(), session.cn(), now) == Role::Owner);
        if !is_owner {
            self.count(session)?;
        }
        let (method, name) = Route::Health.method();
        if head.method != method {
            return Err(Denial::Method(name));
        }
        let id = match policy {
            Ok(admitted) => Some(admitted.manifest().id.to_string()),
            Err(refused) => refused.manifest_id.clone(),
        };
        let id = {
            let mut known = self.id.lock().unwrap_or_else(PoisonError::into_inner);
            if id.is_some() {
                known.clone_from(&id);
            }
            id.or_else(|| known.clone())
        };
        Answer::ok(&HealthAnswer { ok: true, id, serving: policy.is_ok() })
    }

    /// Method, then body, then what it says. `Err(Ok(_))` is answered; `Err(Err(_))`: the peer is gone.
    async fn question<S>(
        &self,
        connection: &mut Connection<S>,
        head: &Head,
        route: Route,
        record: &mut Record,
    ) -> Result<(Question, bool), Result<Denial, ReadError>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let (method, name) = route.method();
        if head.method != method {
            return Err(Ok(Denial::Method(name)));
        }
        if method == Method::Post && !head.is_json && !head.is_too_large() {
            return Err(Ok(Denial::MediaType));
        }
        let (body, waited) = match connection.body(head).await {
            Ok(read) => read,
            Err(ReadError::Refused(error)) => return Err(Ok(error.into())),
            Err(gone) => return Err(Err(gone)),
        };
        record.body_read = true;
        if method == Method::Get && !body.is_empty() {
            return Err(Ok(Denial::BadRequest("this route takes no body")));
        }
        let question = match route {
            Route::Search => Question::search(&body),
            Route::ReadRange => Question::read_range(&body),
            Route::Catalog => Question::catalog(CardKind::Files, &head.query),
            Route::CatalogDirs => Question::catalog(CardKind::Dirs, &head.query),
            Route::Status | Route::Health => Question::status(&head.query),
        };
        let question = question.map_err(Ok)?;
        record.facts = question.facts();
        Ok((question, waited))
    }

    async fn operate(
        self: &Arc<Self>,
        question: Question,
        judged: Judged,
        facts: &mut Facts,
    ) -> Result<Answer, Denial> {
        if let Some(answer) = self.operations.answer_at_once(&question, &judged.admitted, facts) {
            return answer;
        }
        let _turn = match &question {
            Question::Search { .. } => match timeout(SEARCH_WAIT, self.searches.acquire()).await {
                Ok(Ok(turn)) => Some(turn),
                _ => return Err(Denial::Busy),
            },
            _ => None,
        };
        let service = Arc::clone(self);
        let mut found = facts.clone();
        let work = tokio::task::spawn_blocking(move || {
            let is_owner = judged.role == Role::Owner;
            let answer = service.operations.answer(&question, &judged.admitted, is_owner, &mut found);
            (answer, found)
        });
        // a join error is a panic in the operation: that request failed, and no other
        let (answer, found) = work.await.map_err(|_| Denial::Internal)?;
        *facts = found;
        answer
    }

    /// Writes the answer's line. Where it can't be written another answer goes out: what is not in the audit is not
    /// said.
    fn recorded(&self, answer: Answer, session: &Session, record: Record) -> Answer {
        let is_health = record.op == Some(Route::Health.op());
        let now = self.clock.now();
        let mut row = AuditRow {
            ts: rfc3339_millis(now),
            cn: session.cn().map(ToString::to_string),
            op: record.op.map(str::to_owned),
            path: record.path,
            status: answer.status,
            bytes: answer.body.len() as u64,
            q: record.facts.q,
            hits: record.facts.hits,
            doc: record.facts.doc,
            chars: record.facts.chars,
            limit: record.facts.limit,
            total: record.facts.total,
            bypassed: record.bypassed,
        };
        let Err(error) = self.write_row(&row, now) else { return answer };
        self.notices.caused(&error);
        let answer = if is_health && answer.status == 200 { not_serving(&answer) } else { Denial::Audit.into() };
        row.status = answer.status;
        row.bytes = answer.body.len() as u64;
        (row.hits, row.chars, row.total) = (None, None, None);
        let _ = self.write_row(&row, now);
        answer
    }

    fn write_row(&self, row: &AuditRow, now: Timestamp) -> Result<(), String> {
        let line = serde_json::to_string(row).map_err(|error| error.to_string())?;
        self.audit.append(&line, now).map_err(|error| error.to_string())
    }
}

impl Judged {
    /// Passes where this peer may use the route. To one who may use nothing every path looks the same.
    fn permit(self, route: Option<Route>) -> Result<Self, Denial> {
        let permitted = match route {
            Some(route) => self.role.may(route, self.admitted.manifest().ops),
            None => self.role != Role::Anyone,
        };
        if permitted { Ok(self) } else { Err(Denial::Forbidden) }
    }
}

/// `/health` is exempt from the 503s, and tells it so.
fn not_serving(answer: &Answer) -> Answer {
    let told = serde_json::from_slice::<HealthAnswer>(&answer.body).ok();
    let told = told.map(|health| Answer::ok(&HealthAnswer { serving: false, ..health }));
    told.and_then(Result::ok).unwrap_or_else(|| Denial::Audit.into())
}

/// The time as HTTP writes it (RFC 9110 §5.6.7).
fn http_date(now: Timestamp) -> String {
    DateTimePrinter::new().timestamp_to_rfc9110_string(&now).unwrap_or_default()
}
