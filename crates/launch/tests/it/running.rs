//! Runs after the launch: listed, asked, ended; and what a hostile sandbox can do to those who look at it.

use bastion_host::signals::Stop;
use bastion_launch::runs::{self, Report};
use bastion_launch::{Answer, LaunchError, SUPERVISOR};

use crate::world::{Generation, World};

const REPORT: &str = r#"{"schema_version":1,"status":{"schema_version":1,"recorded_at":"2026-01-02T03:05:00.000Z","agent_id":"gardener",
"harness":"codex","run_mode":"watch","cycle":4,"supervisor_state":"sleeping","harness_exit_code":0,
"result":{"status":"waiting","reason":"rain","notes":"All is wet.\u001b[31m"},"next_cycle_at":"2026-01-02T03:15:00.000Z"},
"history":[{"cycle":3,"supervisor_state":"running"}],"output":"one\ntwo\u001b]0;x\u0007\n","output_bytes":8}"#;

const NAME: &str = "gard-20260102030405";

fn launched() -> World {
    let world = World::new();
    world.launch().0.unwrap();
    std::fs::remove_file(world.path("fake/calls")).unwrap();
    world
}

fn show(world: &World) -> (runs::Run, Option<Report>) {
    runs::show(&world.machine.state_dir, NAME, &world.driver(), &*world.clock, &Stop::new()).unwrap()
}

#[test]
fn a_run_is_listed_from_its_start() {
    let world = launched();
    let [run] = runs::list(&world.machine.state_dir).unwrap().0.try_into().unwrap();
    assert_eq!((run.name.as_str(), run.agent.as_str(), run.harness.as_str()), (NAME, "gardener", "codex"));
    assert_eq!(
        (run.driver.as_str(), run.gateway.as_deref(), run.run_mode.as_str()),
        ("openshell", Some("greenhouse"), "watch")
    );
    assert_eq!((run.state().as_str(), run.last.as_ref()), ("unknown", None));
    // a launch that failed while the sandbox was being made can be cleaned up by its name
    let world = World::new();
    world.behave("case \"$call\" in 'sandbox create'*) exit 1;; esac\n");
    world.launch().0.unwrap_err();
    assert_eq!(runs::list(&world.machine.state_dir).unwrap().0.len(), 1);
    assert!(runs::list(std::path::Path::new("/nowhere")).unwrap().0.is_empty());
}

#[test]
fn show_asks_the_supervisor_and_keeps_the_last_word() {
    let world = launched();
    world.write("fake/report", REPORT);
    let (run, report) = show(&world);
    assert_eq!(world.lines(), [format!("openshell sandbox exec -n {NAME} --no-tty -- {SUPERVISOR} report")]);
    let record = run.last.as_ref().unwrap().record.clone().unwrap();
    assert_eq!((run.state().as_str(), record.cycle, record.reason.as_deref()), ("sleeping", Some(4), Some("rain")));
    assert_eq!(record.notes.as_deref(), Some("All is wet.\\u{1b}[31m"));
    assert_eq!(report.unwrap().history.len(), 1);
    std::fs::remove_file(world.path("fake/report")).unwrap();
    let (run, report) = show(&world);
    assert!(report.is_none());
    assert_eq!((run.state().as_str(), run.last.unwrap().record), ("gone", Some(record)));
}

#[test]
fn logs_are_fit_for_a_terminal() {
    let world = launched();
    world.write("fake/report", REPORT);
    let text = runs::logs(&world.machine.state_dir, NAME, &world.driver(), &*world.clock, &Stop::new()).unwrap();
    assert_eq!(text.as_deref(), Some("one\ntwo\\u{1b}]0;x\\u{7}\n"));
    assert!(world.lines()[0].ends_with("report --log"));
}

#[test]
fn stop_takes_the_last_word_and_rm_forgets() {
    let world = launched();
    world.write("fake/report", REPORT);
    let (state, driver, clock) = (&world.machine.state_dir, world.driver(), &*world.clock);
    assert!(runs::stop(state, NAME, &driver, clock, &Stop::new()).unwrap());
    assert!(world.lines().iter().any(|line| *line == format!("openshell sandbox delete {NAME}")));
    let run = runs::find(state, NAME).unwrap();
    assert_eq!((run.state().as_str(), run.last.unwrap().record.unwrap().cycle), ("gone", Some(4)));
    world.behave("case \"$call\" in 'sandbox delete'*) echo 'sandbox not found' >&2; exit 1;; esac\n");
    assert!(!runs::rm(state, NAME, &driver, clock, &Stop::new()).unwrap());
    assert!(matches!(runs::find(state, NAME), Err(LaunchError::NoRun { .. })));
    assert!(runs::list(state).unwrap().0.is_empty());
}

#[test]
fn a_sandbox_that_cannot_be_ended_is_not_forgotten() {
    let world = launched();
    world.behave("case \"$call\" in 'sandbox delete'*) echo 'no luck' >&2; exit 1;; esac\n");
    let state = &world.machine.state_dir;
    let error = runs::rm(state, NAME, &world.driver(), &*world.clock, &Stop::new()).unwrap_err();
    assert!(error.to_string().contains("no luck"));
    assert!(runs::find(state, NAME).is_ok());
}

#[test]
fn a_state_folder_of_its_own_is_told_to_the_supervisor() {
    let mut world = World::new();
    world.env("OPENSHELL_AGENT_STATE_DIR", "/sandbox/own");
    world.launch().0.unwrap();
    show(&world);
    let last = world.lines().pop().unwrap();
    assert!(last.ends_with(&format!("-- env OPENSHELL_AGENT_STATE_DIR=/sandbox/own {SUPERVISOR} report")), "{last}");
}

#[test]
fn no_name_leaves_the_state_folder() {
    let world = launched();
    for name in ["../runs/x", "/etc/passwd", "", "nobody", "a\u{1b}b"] {
        let error = runs::find(&world.machine.state_dir, name).unwrap_err();
        assert!(matches!(error, LaunchError::NoRun { .. }) && !error.to_string().contains('\u{1b}'), "{error}");
    }
}

#[test]
fn a_hostile_report_costs_nothing_but_itself() {
    let world = launched();
    for (answer, ok) in [
        ("head -c 1000000000 /dev/zero", false),
        ("printf '\\033[2J'", true),
        ("echo '{\"status\":{\"result\":{\"notes\":[1]}}}'", true),
        ("echo '[[[[['", true),
    ] {
        world.behave(&format!("case \"$call\" in 'sandbox exec'*) {answer}; exit 0;; esac\n"));
        let shown = runs::show(&world.machine.state_dir, NAME, &world.driver(), &*world.clock, &Stop::new());
        assert_eq!(shown.is_ok(), ok, "{answer}");
        let kept = std::fs::metadata(world.path(&format!("state/runs/{NAME}.json"))).unwrap().len();
        assert!(kept < 10_000, "{kept}");
    }
    world.behave("case \"$call\" in 'sandbox exec'*) sleep 60;; esac\n");
    let limits = bastion_launch::Limits { call: std::time::Duration::from_millis(500), ..Default::default() };
    let driver = bastion_launch::OpenShell::new(&world.machine).unwrap().with_limits(limits);
    assert!(runs::show(&world.machine.state_dir, NAME, &driver, &*world.clock, &Stop::new()).is_err());
}

#[test]
fn a_hostile_state_folder_is_read_without_following_anything() {
    let world = World::new();
    world.write("secret", "{\"cycle\": 7}").write("run/history.jsonl", "{\"cycle\":1}\nnot json\n{\"cycle\":2}\n");
    let folder = world.path("run");
    let read = || Report::read(&runs::read_folder(&folder, false));
    std::os::unix::fs::symlink("../secret", folder.join("status.json")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.join("output.log")).unwrap();
    let report = read();
    assert!(report.record.is_none() && report.output.is_empty());
    assert_eq!(report.history.iter().map(|record| record.cycle).collect::<Vec<_>>(), [Some(1), Some(2)]);
    for file in ["status.json", "output.log"] {
        std::fs::remove_file(folder.join(file)).unwrap();
    }
    let fifo = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, folder.join("status.json"), fifo, mode, 0).unwrap();
    let huge = std::fs::File::create(folder.join("output.log")).unwrap();
    huge.set_len(1 << 30).unwrap();
    let report = read();
    assert!(report.record.is_none() && report.output.len() < 200_000);
}

#[test]
fn what_an_old_program_printed_before_it_failed_is_shown() {
    let world = World::of(Generation::Old);
    world.behave("case \"$call\" in 'sandbox create'*) sleep 0.2; echo 'image not found' >&2; exit 1;; 'sandbox get'*) exit 1;; esac\n");
    let text = world.launch().0.unwrap_err().to_string();
    assert!(text.contains("image not found"), "{text}");
    assert!(world.path(&format!("state/runs/{NAME}.log")).exists());
}

#[test]
fn an_attached_run_keeps_its_last_word_and_how_it_ended() {
    let mut world = World::new();
    world.options.attach = true;
    world.behave(
        "case \"$call\" in 'sandbox create'*) echo 'OPENSHELL_AGENT_RESULT {\"status\":\"blocked\",\"reason\":\"rain\",\"notes\":\"n\"}'; exit 7;; esac\n",
    );
    let run = world.launch().0.unwrap().run;
    let record = run.last.clone().unwrap().record.unwrap();
    assert_eq!(
        (record.status.as_deref(), record.reason.as_deref(), record.notes.as_deref()),
        (Some("blocked"), Some("rain"), Some("n"))
    );
    assert_eq!(run.state(), "ended with status 7");
}

#[test]
fn a_record_that_cannot_be_read_is_told_and_can_be_forgotten() {
    let world = World::new();
    world.launch().0.unwrap();
    let (known, _) = runs::list(&world.machine.state_dir).unwrap();
    let text = serde_json::to_string(&known[0]).unwrap();
    world.write("state/runs/torn.json", "{").write("state/runs/other.json", &text);
    let (runs, faults) = runs::list(&world.machine.state_dir).unwrap();
    assert_eq!((runs.len(), faults.len()), (1, 2));
    for name in ["torn", "other"] {
        assert!(runs::find(&world.machine.state_dir, name).is_err());
        runs::forget(&world.machine.state_dir, name).unwrap();
    }
    assert!(runs::list(&world.machine.state_dir).unwrap().1.is_empty());
}

#[test]
fn what_was_not_found_inside_a_sandbox_does_not_make_it_gone() {
    let world = World::new();
    let name = world.launch().0.unwrap().run.name;
    world.behave("case \"$call\" in 'sandbox exec'*) echo 'exec in sandbox: bastion-supervisor: not found' >&2; exit 127;; esac\n");
    let shown = runs::show(&world.machine.state_dir, &name, &world.driver(), &*world.clock, &Stop::new());
    let error = shown.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("not found") && !error.contains("Nothing was done"), "{error}");
    assert_ne!(runs::find(&world.machine.state_dir, &name).unwrap().state(), "gone");
}

#[test]
fn of_two_launches_at_once_with_one_name_one_is_refused_and_the_other_stays() {
    let world = World::new();
    let cleared = || world.prepare().unwrap().clear(&mut |_| Answer::Yes).unwrap();
    let (one, other) = (cleared(), cleared());
    assert_eq!(one.plan().sandbox, other.plan().sandbox);
    let run = one.launch(&world.driver(), &Stop::new(), &mut |_| {}).unwrap().run;
    let error = other.launch(&world.driver(), &Stop::new(), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("was taken by another launch"), "{error}");
    assert_eq!(runs::find(&world.machine.state_dir, &run.name).unwrap(), run);
    assert_eq!(world.lines().iter().filter(|line| line.contains("sandbox create")).count(), 1);
}
