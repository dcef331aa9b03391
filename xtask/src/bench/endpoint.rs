//! The endpoint against nginx: the same certificates, the same bytes, the same client.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::tools::{Bastion, is_there, release};

/// A process that ends with the measurement; nginx by a command of its own, which ends its workers too.
struct Ended {
    child: Child,
    stop: Option<Command>,
}

impl Drop for Ended {
    fn drop(&mut self) {
        if !self.stop.as_mut().is_some_and(|stop| stop.status().is_ok_and(|status| status.success())) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// `read_range` on kept connections, and new connections, each against nginx serving a file of the same size.
pub(crate) fn endpoint(program: &Path, seconds: u64) -> Result<()> {
    if !is_there("nginx") && !Path::new("/usr/sbin/nginx").exists() {
        println!("endpoint: left out, nginx is not there");
        return Ok(());
    }
    let load = release("examples", "load")?;
    let home = tempfile::tempdir()?;
    let bastion = Bastion { program, home: home.path() };
    let folder = home.path().join("folder");
    std::fs::create_dir(&folder)?;
    std::fs::write(folder.join("a.txt"), "All work and no play makes a dull text. ".repeat(100))?;
    let folder = folder.to_str().context("the temporary folder's name")?;
    bastion.run(&["up", "--once", "--quiet", folder])?;
    let (port_file, state) = (home.path().join("port"), home.path().join("state"));
    let manifest = format!("{folder}/.agent/manifest.yaml");
    let port_text = port_file.to_str().context("the temporary folder's name")?;
    let serve = ["serve", "--bind", "127.0.0.1:0", "--port-file", port_text, &manifest];
    let _serve = Ended { child: bastion.command(&serve).stderr(Stdio::null()).spawn()?, stop: None };
    let port = wait_for(|| std::fs::read_to_string(&port_file).ok()?.trim().parse::<u16>().ok())?;
    let walk = std::fs::read_to_string(format!("{folder}/.agent/walk.jsonl"))?;
    let row: serde_json::Value = serde_json::from_str(walk.lines().next().context("no file was walked")?)?;
    let doc = row["doc"].as_str().context("the file was not read")?;
    let identity = |name: &str| state.join("identities").join(name);
    let body = format!(r#"{{"doc":"{doc}","start":0,"end":4000}}"#);
    let run = |port: u16, path: &str, body: &str, mode: &str| -> Result<f64> {
        let output = Command::new(&load)
            .args([mode, &format!("127.0.0.1:{port}"), path, body, &seconds.to_string()])
            .args([identity("tls.pem"), identity("tls.key"), state.join("ca/root.pem")])
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim().parse().with_context(|| format!("{text}{}", String::from_utf8_lossy(&output.stderr)))
    };
    let answer = "x".repeat(4_130);
    let nginx_port = free_port()?;
    let _nginx = nginx(
        home.path(),
        nginx_port,
        &answer,
        &identity("tls.pem"),
        &identity("tls.key"),
        &state.join("ca/root.pem"),
    )?;
    for (mode, words, aim) in
        [("keep", "read_range, kept connections", 0.5), ("new", "new mutual-TLS connections", 0.8)]
    {
        let ours = run(port, "/read_range", &body, mode)?;
        let peer = run(nginx_port, "/a.json", "", mode)?;
        println!("endpoint: {words}: {ours:.0}/s, nginx {peer:.0}/s: {:.2}x (aim {aim})", ours / peer);
    }
    Ok(())
}

fn nginx(home: &Path, port: u16, answer: &str, cert: &Path, key: &Path, ca: &Path) -> Result<Ended> {
    let dir = home.join("nginx");
    std::fs::create_dir(&dir)?;
    std::fs::write(dir.join("a.json"), answer)?;
    let dir_text = dir.display();
    let config = format!(
        "daemon off; worker_processes 2; pid {dir_text}/pid; error_log {dir_text}/error.log;\n\
         user root;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ access_log {dir_text}/access.log; client_body_temp_path {dir_text}/b; proxy_temp_path {dir_text}/p;\n\
         fastcgi_temp_path {dir_text}/f; uwsgi_temp_path {dir_text}/u; scgi_temp_path {dir_text}/s; keepalive_requests 1000000000;\n\
         server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {}; ssl_certificate_key {}; ssl_client_certificate {};\n\
         ssl_verify_client on; ssl_session_cache off; ssl_session_tickets off; root {dir_text}; }} }}\n",
        cert.display(),
        key.display(),
        ca.display()
    );
    let path = dir.join("nginx.conf");
    std::fs::write(&path, config)?;
    let program = if is_there("nginx") { "nginx" } else { "/usr/sbin/nginx" };
    let command = || {
        let mut command = Command::new(program);
        command.args(["-c".as_ref(), path.as_os_str(), "-p".as_ref(), dir.as_os_str()]).stderr(Stdio::null());
        command
    };
    let mut stop = command();
    stop.args(["-s", "stop"]);
    let nginx = Ended { child: command().spawn()?, stop: Some(stop) };
    wait_for(|| std::net::TcpStream::connect(("127.0.0.1", port)).ok())?;
    Ok(nginx)
}

fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn wait_for<T>(ready: impl Fn() -> Option<T>) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(value) = ready() {
            return Ok(value);
        }
        if start.elapsed() > Duration::from_secs(20) {
            bail!("it did not start");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
