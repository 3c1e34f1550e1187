//! A real headless Chromium, driven over `WebDriver` (chromedriver) by plain HTTP. One browser at a time; everything is waited
//! for, never timed.

use super::programs::{Folder, Program};
use crate::support::world::{eventually, pause};
use seckill::dev::ports::free_port;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// A browser takes half a gigabyte.
static ONE: Semaphore = Semaphore::const_new(1);
/// How `WebDriver` names a reference to an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// The arrow that goes to the next choice.
pub const ARROW_DOWN: &str = "\u{e015}";
/// The Tab key.
const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";

/// A browser with one page, until it is dropped.
pub struct Browser {
    port: u16,
    session: String,
    http: reqwest::Client,
    // In this order: the session is ended by `drop` before its driver and its folder go.
    _driver: Program,
    _folder: Folder,
    _turn: SemaphorePermit<'static>,
}

impl Drop for Browser {
    /// Ends the session, also when a test fails: a driver that is killed would leave the browser running.
    fn drop(&mut self) {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return };
        stream.set_read_timeout(Some(Duration::from_secs(20))).ok();
        let head = format!("DELETE /session/{} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", self.session);
        stream.write_all(head.as_bytes()).ok();
        stream.read_exact(&mut [0; 12]).ok();
    }
}

impl Browser {
    /// Starts one with a window of this many pixels.
    pub async fn start(width: u32, height: u32) -> Self {
        let turn = ONE.acquire().await.expect("never closed");
        let (folder, port) = (Folder::new(&format!("browser{width}")), free_port().expect("a port"));
        let mut command = Command::new("chromedriver");
        command.arg(format!("--port={port}"));
        let mut driver = Program::run(folder.path(), command);
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(150)).build().expect("a client");
        eventually("chromedriver", async || {
            driver.must_run();
            http.get(format!("http://127.0.0.1:{port}/status")).send().await.is_ok()
        })
        .await;
        let profile = folder.path().join("profile").display().to_string();
        let args = [
            // Tests may run as root, and in containers with a small /dev/shm.
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-gpu".to_owned(),
            "--no-first-run".to_owned(),
            "--no-proxy-server".to_owned(),
            "--lang=en-GB".to_owned(),
            format!("--window-size={width},{height}"),
            format!("--user-data-dir={profile}"),
        ];
        let options = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "args": args }, "goog:loggingPrefs": { "browser": "ALL" } } } });
        let mut browser = Self { port, session: String::new(), http, _driver: driver, _folder: folder, _turn: turn };
        let begun = browser.send("POST", "/session", Some(options)).await.expect("a session");
        browser.session = begun["sessionId"].as_str().expect("a session's id").to_owned();
        // Exactly, whatever borders a window has.
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        let devtools = json!({ "cmd": "Emulation.setDeviceMetricsOverride", "params": metrics });
        browser.command("/goog/cdp/execute", devtools).await;
        browser
    }

    async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value, String> {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let mut request = self.http.request(method.parse().expect("a method"), url);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.map_err(|error| error.to_string())?;
        let good = answer.status().is_success();
        let document: Value = answer.json().await.map_err(|error| error.to_string())?;
        if good { Ok(document["value"].clone()) } else { Err(document["value"].to_string()) }
    }

    async fn try_command(&self, path: &str, body: Value) -> Result<Value, String> {
        self.send("POST", &format!("/session/{}{path}", self.session), Some(body)).await
    }

    async fn command(&self, path: &str, body: Value) -> Value {
        self.try_command(path, body).await.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Opens an address.
    pub async fn open(&self, url: &str) {
        self.command("/url", json!({ "url": url })).await;
    }

    /// Runs a script in the page and returns what it returns.
    pub async fn eval(&self, script: &str) -> Value {
        self.command("/execute/sync", json!({ "script": script, "args": [] })).await
    }

    async fn find(&self, css: &str) -> Option<String> {
        let found = self.try_command("/element", json!({ "using": "css selector", "value": css })).await.ok()?;
        found[ELEMENT].as_str().map(str::to_owned)
    }

    /// What a person reads there now; empty when it is not there or hidden.
    pub async fn text(&self, css: &str) -> String {
        let script = format!(
            "const e = document.querySelector({}); return e && e.checkVisibility() ? (e.innerText ?? e.textContent) : ''",
            json!(css)
        );
        self.eval(&script).await.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the element is there and reads like this.
    pub async fn sees(&self, css: &str, words: &str) {
        let mut last = String::new();
        let searched = tokio::time::timeout(Duration::from_secs(110), async {
            loop {
                last = self.text(css).await;
                if last.contains(words) && (!words.is_empty() || self.find(css).await.is_some()) {
                    return;
                }
                pause().await;
            }
        });
        if searched.await.is_err() {
            let page = self.text("body").await;
            panic!("{css} never read {words:?} but {last:?}; the page: {page}");
        }
    }

    /// Waits until there is no such element, or it is hidden.
    pub async fn misses(&self, css: &str) {
        eventually(&format!("no {css}"), async || self.text(css).await.is_empty()).await;
    }

    /// Clicks as a person does: waits until it can be clicked.
    pub async fn click(&self, css: &str) {
        let mut last = Err(String::new());
        for _ in 0..1_500 {
            let enabled = format!(
                "const e = document.querySelector({}); return !!e && !e.disabled && e.checkVisibility()",
                json!(css)
            );
            if self.eval(&enabled).await == true
                && let Some(id) = self.find(css).await
            {
                last = self.try_command(&format!("/element/{id}/click"), json!({})).await;
                if last.is_ok() {
                    return;
                }
            }
            pause().await;
        }
        panic!("cannot click {css}: {last:?}; the page: {}", self.text("body").await);
    }

    /// Types into a field, in place of what stands there.
    pub async fn fill(&self, css: &str, text: &str) {
        self.sees_element(css).await;
        let id = self.find(css).await.expect("the field");
        self.command(&format!("/element/{id}/clear"), json!({})).await;
        self.command(&format!("/element/{id}/value"), json!({ "text": text })).await;
    }

    /// Waits until an element is there.
    pub async fn sees_element(&self, css: &str) {
        eventually(&format!("an element {css}"), async || self.find(css).await.is_some()).await;
    }

    /// Presses Enter on what has the focus.
    pub async fn enter(&self) {
        self.press(ENTER).await;
    }

    /// Presses a key, by its code of `WebDriver`.
    pub async fn press(&self, key: &str) {
        let keys = json!([{ "type": "keyDown", "value": key }, { "type": "keyUp", "value": key }]);
        self.command("/actions", json!({ "actions": [{ "type": "key", "id": "keys", "actions": keys }] })).await;
    }

    /// Chooses in a list, as a person does.
    pub async fn choose(&self, css: &str, value: &str) {
        self.sees_element(css).await;
        let script = format!(
            "const e = document.querySelector({}); e.value = {}; e.dispatchEvent(new Event('change', {{ bubbles: true }})); return e.value",
            json!(css),
            json!(value)
        );
        assert_eq!(self.eval(&script).await, json!(value), "{css} has no {value}");
    }

    /// Presses Tab, and says what has the focus now: its id, else its words.
    pub async fn tab(&self) -> String {
        self.press(TAB).await;
        let script =
            "const e = document.activeElement; return e.id || e.innerText || e.getAttribute('aria-label') || e.tagName";
        self.eval(script).await.as_str().unwrap_or_default().trim().to_owned()
    }

    /// Errors of the page itself: broken scripts, and what the policy forbade. Answers of the API that are no success are
    /// reported in the same place, and are no error of the page.
    pub async fn complaints(&self) -> Vec<String> {
        let log = self.command("/se/log", json!({ "type": "browser" })).await;
        let severe = log.as_array().into_iter().flatten().filter(|line| line["level"] == "SEVERE");
        let lines = severe.map(|line| line["message"].as_str().unwrap_or_default().to_owned());
        lines.filter(|line| !line.contains("the server responded with a status of")).collect()
    }

    /// What a checker of accessibility finds first: controls without a name, pictures without words, ids used twice.
    pub async fn flaws(&self) -> Vec<String> {
        let found = self.eval(FLAWS).await;
        found.as_array().into_iter().flatten().filter_map(|flaw| flaw.as_str().map(str::to_owned)).collect()
    }

    /// A picture of what is shown, when `SCREENSHOTS` names a folder.
    pub async fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("SCREENSHOTS") else { return };
        let taken = self
            .command(
                "/goog/cdp/execute",
                json!({ "cmd": "Page.captureScreenshot", "params": { "format": "webp", "quality": 82 } }),
            )
            .await;
        let file = Path::new(&folder).join(format!("{name}.webp.base64"));
        std::fs::write(file, taken["data"].as_str().unwrap_or_default()).expect("a picture");
    }
}

const FLAWS: &str = r"
const flaws = [];
const shown = (e) => e.checkVisibility({ checkVisibilityCSS: true });
const label = (e) => (e.id && document.querySelector(`label[for='${e.id}']`)) || e.closest('label') || e.getAttribute('aria-label') || e.getAttribute('aria-labelledby');
const name = (e) => `${e.tagName.toLowerCase()}#${e.id} ${e.outerHTML.slice(0, 80)}`;
for (const e of document.querySelectorAll('input, select, textarea')) if (shown(e) && !label(e)) flaws.push(`no label: ${name(e)}`);
for (const e of document.querySelectorAll('button, a, summary')) if (shown(e) && !(e.innerText.trim() || e.getAttribute('aria-label'))) flaws.push(`no words: ${name(e)}`);
for (const e of document.querySelectorAll('img')) if (!e.hasAttribute('alt')) flaws.push(`no alt: ${name(e)}`);
for (const e of document.querySelectorAll('svg')) if (!e.getAttribute('aria-label') && e.getAttribute('aria-hidden') !== 'true') flaws.push(`no words: ${name(e)}`);
for (const e of document.querySelectorAll('table')) if (!e.querySelector('caption')) flaws.push(`no caption: ${name(e)}`);
const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
for (const id of new Set(ids.filter((id, at) => ids.indexOf(id) !== at))) flaws.push(`id twice: ${id}`);
if (document.querySelectorAll('h1').length !== 1) flaws.push(`${document.querySelectorAll('h1').length} h1`);
if (!document.documentElement.lang) flaws.push('no language');
if (!document.title) flaws.push('no title');
if (document.documentElement.scrollWidth > window.innerWidth) flaws.push(`wider than the window: ${document.documentElement.scrollWidth}`);
for (const e of document.querySelectorAll('button, input, select')) if (shown(e) && !['checkbox', 'radio'].includes(e.type) && e.getBoundingClientRect().height < 36) flaws.push(`too small for a thumb: ${name(e)}`);
return flaws;
";
