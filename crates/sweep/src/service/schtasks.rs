//! A Task Scheduler task (Task Scheduler Schema 1.2; arguments as CommandLineToArgvW reads them).
//!
//! Windows has no settings file: the task sees the account's own environment variables.

use super::{Account, Agent, Invocation, ServiceError, Unit, text, xml};

pub(super) fn unit(agent: &Agent, account: &Account) -> Result<Unit, ServiceError> {
    let name = agent.name();
    let arguments = agent.arguments()?;
    for path in [&agent.program, &agent.manifest].into_iter().chain(&agent.out) {
        // There is no way to write these so that they stand for themselves.
        if text(path)?.matches('%').count() > 1 || text(path)?.contains("$(") {
            let why = "the Task Scheduler would replace what is between % and %, or in $( )";
            return Err(ServiceError::Path { path: path.clone(), why });
        }
    }
    let (program, rest) = arguments.split_first().map_or(("", &[][..]), |(program, rest)| (program.as_str(), rest));
    let rest: Vec<String> = rest.iter().map(|argument| quoted(argument)).collect();
    let data = text(&account.data())?;
    let text = format!(
        r#"<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>Bastion agent {id}: prepares its folder on the manifest's cadence</Description>
  </RegistrationInfo>
  <Triggers>
    <LogonTrigger>
      <Enabled>true</Enabled>
    </LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Owner">
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <StartWhenAvailable>true</StartWhenAvailable>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>255</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Owner">
    <Exec>
      <Command>{command}</Command>
      <Arguments>{arguments}</Arguments>
      <WorkingDirectory>{data}</WorkingDirectory>
    </Exec>
  </Actions>
</Task>
"#,
        id = agent.id,
        command = xml(program),
        arguments = xml(&rest.join(" ")),
        data = xml(&data),
    );
    let path = account.data().join(format!("{name}.xml"));
    Ok(Unit {
        enable: vec![
            Invocation::new("schtasks", ["/Create", "/F", "/TN", &name, "/XML", &path.to_string_lossy()]),
            Invocation::new("schtasks", ["/Run", "/TN", &name]),
        ],
        disable: vec![Invocation::new("schtasks", ["/Delete", "/F", "/TN", &name])],
        forget: Vec::new(),
        status: Invocation::new("schtasks", ["/Query", "/V", "/FO", "LIST", "/TN", &name]),
        env_file: account.env_file(),
        folders: vec![account.data()],
        utf16: true,
        name,
        path,
        text,
    })
}

/// One argument in quotes. A backslash stands for itself but before a quote, where it is doubled.
fn quoted(argument: &str) -> String {
    let mut text = String::from("\"");
    let mut backslashes = 0;
    for c in argument.chars() {
        match c {
            '\\' => backslashes += 1,
            '"' => {
                text.extend(std::iter::repeat_n('\\', backslashes + 1));
                backslashes = 0;
            }
            _ => backslashes = 0,
        }
        text.push(c);
    }
    text.extend(std::iter::repeat_n('\\', backslashes));
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_as_windows_reads_them() {
        assert_eq!(quoted(r"C:\a b\c"), r#""C:\a b\c""#);
        assert_eq!(quoted(r"C:\a b\"), r#""C:\a b\\""#);
        assert_eq!(quoted(r#"a"b"#), r#""a\"b""#);
        assert_eq!(quoted(r#"a\"b"#), r#""a\\\"b""#);
        assert_eq!(quoted("50%&x"), r#""50%&x""#);
    }
}
