//! A launchd agent (launchd.plist(5)).

use super::{Account, Agent, Invocation, ServiceError, Unit, text, xml};

/// launchd reads no settings file; the shell does, and is then replaced by the program.
const WITH_SETTINGS: &str = r#"f=$1; shift; if [ -r "$f" ]; then set -a; . "$f"; set +a; fi; exec "$@""#;

pub(super) fn unit(agent: &Agent, account: &Account) -> Result<Unit, ServiceError> {
    let name = agent.name();
    let mut arguments = vec!["/bin/sh".to_owned(), "-c".to_owned(), WITH_SETTINGS.to_owned(), name.clone()];
    arguments.push(text(&account.env_file())?);
    arguments.extend(agent.arguments()?);
    let arguments: String =
        arguments.iter().map(|argument| format!("    <string>{}</string>\n", xml(argument))).collect();
    let data = text(&account.data())?;
    let text = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- Written by `bastion service install`; `bastion service uninstall` takes it away. -->
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{name}</string>
  <key>ProgramArguments</key>
  <array>
{arguments}  </array>
  <key>WorkingDirectory</key>
  <string>{data}</string>
  <key>StandardErrorPath</key>
  <string>{data}/{name}.log</string>
  <key>Umask</key>
  <integer>{umask}</integer>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ThrottleInterval</key>
  <integer>60</integer>
  <key>ExitTimeOut</key>
  <integer>3600</integer>
  <key>ProcessType</key>
  <string>Background</string>
</dict>
</plist>
"#,
        data = xml(&data),
        umask = 0o077,
    );
    let path = account.home.join("Library/LaunchAgents").join(format!("{name}.plist"));
    let session = format!("gui/{}", account.uid);
    let job = format!("{session}/{name}");
    Ok(Unit {
        enable: vec![
            Invocation::new("launchctl", ["bootstrap", &session, &path.to_string_lossy()]),
            Invocation::new("launchctl", ["enable", &job]),
        ],
        disable: vec![Invocation::new("launchctl", ["bootout", &job])],
        forget: Vec::new(),
        status: Invocation::new("launchctl", ["print", &job]),
        env_file: account.env_file(),
        folders: vec![account.data()],
        utf16: false,
        name,
        path,
        text,
    })
}
