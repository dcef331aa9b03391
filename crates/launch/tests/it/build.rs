//! A real image build: buildah or podman as they are on this machine, the payload inside, a user that is not root.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::world::World;

/// The builder that works here, or why none does.
fn builder() -> Result<&'static str, String> {
    let tried = ["podman", "buildah"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success()));
    tried.ok_or_else(|| "neither podman nor buildah is installed".to_owned())
}

#[test]
fn a_built_image_holds_the_payload_for_a_user_that_is_not_root() {
    let builder = match builder() {
        Ok(builder) => builder,
        Err(why) => return println!("SKIPPED: {why}"),
    };
    let shell = std::path::Path::new("/bin/busybox");
    if !shell.exists() {
        return println!("SKIPPED: there is no static shell (busybox-static)");
    }
    let world = World::new();
    std::fs::copy(shell, world.agent().join("image/busybox")).unwrap();
    world.write(
        "repo/agents/gardener/image/Dockerfile",
        "FROM scratch\nCOPY busybox /bin/sh\nCOPY busybox /bin/busybox\nUSER 1234\n",
    );
    world.write("repo/agents/gardener/image/.dockerignore", "*\n!busybox\n");
    // the gateway says podman; what answers to that name is the real builder, with storage of its own
    let storage = world.path("storage").display().to_string();
    let run = format!(
        "#!/bin/sh\nexec {builder} --root {storage}/root --runroot {storage}/run --storage-driver vfs \"$@\" >{storage}.log 2>&1\n"
    );
    let podman = world.path("fake/podman");
    std::fs::write(&podman, run).unwrap();
    std::fs::set_permissions(&podman, std::fs::Permissions::from_mode(0o755)).unwrap();
    world.behave(
        "case \"$call\" in 'gateway info'*) echo '{\"compute_drivers\":[{\"name\":\"podman\"}]}'; exit 0;; esac\n",
    );
    let (launched, _) = world.launch();
    let log = std::fs::read_to_string(format!("{storage}.log")).unwrap_or_default();
    if let Err(error) = launched {
        // a machine where even an empty image can't be built proves nothing about ours
        let can = ["unshare", "namespace", "mount", "operation not permitted", "chown"];
        if can.iter().any(|sign| log.to_lowercase().contains(sign)) {
            return println!("SKIPPED: {builder} can't build here: {}", log.lines().last().unwrap_or_default());
        }
        panic!("{error}\n{log}");
    }
    let with = |words: &[&str]| {
        let common =
            ["--root", &format!("{storage}/root"), "--runroot", &format!("{storage}/run"), "--storage-driver", "vfs"]
                .map(str::to_owned);
        Command::new(builder).args(common).args(words).output().unwrap()
    };
    let made = with(&["from", "--pull-never", "localhost/openshell/agent-gardener:1767323045"]);
    if builder != "buildah" || !made.status.success() {
        return println!("SKIPPED: looking into the image needs buildah ({})", String::from_utf8_lossy(&made.stderr));
    }
    let container = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let mount = String::from_utf8(with(&["mount", &container]).stdout).unwrap().trim().to_owned();
    let payload = std::path::Path::new(&mount).join("etc/openshell/agent-payload");
    let mode = |path: &str| payload.join(path).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("agent-prompt.md"), mode("runtime/bastion-supervisor"), mode("skills")), (0o444, 0o555, 0o555));
    assert_eq!(std::fs::read(payload.join("runtime/bastion-supervisor")).unwrap(), b"the supervisor");
    let policy = std::path::Path::new(&mount).join("etc/openshell/policy.yaml").metadata().unwrap();
    assert_eq!(policy.permissions().mode() & 0o777, 0o444);
    let user = with(&["inspect", "--format", "{{.OCIv1.Config.User}}", &container]);
    assert_eq!(String::from_utf8_lossy(&user.stdout).trim(), "1234");
    // the image's own user reads it, and writes nothing
    let script = "cat /etc/openshell/agent-payload/agent-prompt.md >/dev/null && ! (: > /etc/openshell/agent-payload/x) 2>/dev/null \
                  && ! (: > /etc/openshell/agent-payload/skills/x) 2>/dev/null && echo read-only";
    let applet = script.replace("cat ", "/bin/busybox cat ");
    let ran = with(&["run", "--isolation", "chroot", &container, "/bin/sh", "-c", &applet]);
    if ran.status.success() {
        assert_eq!(String::from_utf8_lossy(&ran.stdout).trim(), "read-only");
    } else {
        println!("SKIPPED: nothing runs in a container here: {}", String::from_utf8_lossy(&ran.stderr));
    }
    with(&["rm", &container]);
}
