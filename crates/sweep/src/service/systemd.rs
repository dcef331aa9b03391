//! A systemd user unit (systemd.service(5), systemd.exec(5); quoting: systemd.syntax(7)).

use super::{Account, Agent, Invocation, ServiceError, Unit};

pub(super) fn unit(agent: &Agent, account: &Account) -> Result<Unit, ServiceError> {
    let name = agent.name();
    let file = format!("{name}.service");
    let command: Vec<String> = agent.arguments()?.iter().map(|argument| quoted(argument)).collect();
    // `:` before the program: no $VARIABLE is replaced in what follows.
    let text = format!(
        "\
# Written by `bastion service install`; `bastion service uninstall` takes it away.

[Unit]
Description=Bastion agent {id}: prepares its folder on the manifest's cadence

[Service]
ExecStart=:{command}
EnvironmentFile=-%h/.config/bastion-agent/env
WorkingDirectory=-%h/.local/share/bastion-agent
UMask=0077
NoNewPrivileges=yes
PrivateTmp=yes
Restart=on-failure
RestartSec=60
# A stop lets the current run finish: only the sweep itself is told, and it gets the time.
KillMode=mixed
TimeoutStopSec=1h
SuccessExitStatus=130 143
# 2: the command line is wrong, and will be the next time.
RestartPreventExitStatus=2

[Install]
WantedBy=default.target
",
        id = agent.id,
        command = command.join(" "),
    );
    let systemctl = |args: &[&str]| Invocation {
        program: "systemctl",
        args: ["--user"].iter().chain(args).map(|arg| (*arg).to_owned()).collect(),
    };
    let reload = systemctl(&["daemon-reload"]);
    Ok(Unit {
        path: account.home.join(".config/systemd/user").join(&file),
        text,
        enable: vec![
            reload.clone(),
            systemctl(&["enable", &file]),
            // One that runs an older unit is told to stop, finishes its run, and comes back with this one.
            systemctl(&["restart", "--no-block", &file]),
        ],
        disable: vec![systemctl(&["disable", "--now", "--no-block", &file])],
        forget: vec![reload],
        status: systemctl(&["status", "--no-pager", &file]),
        env_file: account.env_file(),
        folders: vec![account.data()],
        utf16: false,
        name,
    })
}

/// One argument, read back by systemd as it is: in quotes, with `%`, the specifiers' mark, doubled.
fn quoted(argument: &str) -> String {
    format!("\"{}\"", argument.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"))
}
