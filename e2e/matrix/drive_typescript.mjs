// Drives an agent with the official ACP SDK for TypeScript, step by step: node drive_typescript.mjs PLAN
// The steps are those of drive_python.py, and so is what is printed: one JSON object a line.
import { spawn } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const plan = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const require = createRequire(path.join(plan.extra.modules, "x.js"));
const acp = await import(pathToFileURL(require.resolve("@agentclientprotocol/sdk")));
const { initialize, session } = acp.methods.agent;

class Absent extends Error {}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const wants = (...steps) => steps.some((step) => plan.steps.includes(step));
const print = (step, result, detail = "") =>
  fs.writeSync(1, `${JSON.stringify({ step, result, detail: detail.slice(0, 600) })}\n`);

function expect(condition, what, evidence = "") {
  if (!condition) throw new Error(evidence ? `${what}: ${String(evidence).slice(0, 300)}` : what);
}

/** A step: works when `what` resolves within the limit. Never rejects. */
async function limited(step, what) {
  const late = sleep(plan.limit * 1000).then(() => {
    throw new Error(`not within ${plan.limit} s`);
  });
  try {
    await Promise.race([what(), late]);
    print(step, "works");
  } catch (error) {
    const said = error instanceof acp.RequestError ? `${error.code} ${error.message} ${JSON.stringify(error.data ?? "")}` : String(error);
    print(step, error instanceof Absent ? "absent" : "fails", error instanceof Absent ? error.message : said);
  }
}

/** Whether the endless command of this cell runs; the host sees the processes of a sandbox. */
function runs() {
  return fs.readdirSync("/proc").some((entry) => {
    if (!/^\d+$/.test(entry)) return false;
    try {
      return fs.readFileSync(`/proc/${entry}/cmdline`, "utf8").includes(`never-ends-${plan.name}`);
    } catch {
      return false;
    }
  });
}

class Connection {
  constructor(command) {
    this.updates = new Map();
    this.asked = 0;
    const log = fs.openSync(plan.log, "a");
    this.child = spawn(command[0], command.slice(1), { cwd: plan.workspace, env: plan.env, stdio: ["pipe", "pipe", log] });
    fs.closeSync(log);
    this.child.stdin.on("error", () => {}); // podbot's end is seen on its stdout
    this.ended = new Promise((resolve) => this.child.once("exit", resolve));
    const app = acp
      .client({ name: "podbot-matrix" })
      .onRequest("session/request_permission", ({ params }) => {
        this.asked += 1;
        const { optionId } = params.options.find((option) => option.kind === "allow_once");
        return { outcome: { outcome: "selected", optionId } };
      })
      .onNotification("session/update", ({ params }) => {
        this.of(params.sessionId).push(params.update);
      });
    const stream = acp.ndJsonStream(Writable.toWeb(this.child.stdin), Readable.toWeb(this.child.stdout));
    this.connection = app.connect(stream);
    this.agent = this.connection.agent;
  }

  /** End of input, TERM after 2 s, KILL after 4 s: what the SDK for Python does, for this one leaves it to its user. */
  async close() {
    this.child.stdin.end();
    for (const signal of ["SIGTERM", "SIGKILL"]) {
      await Promise.race([this.ended, sleep(2000)]);
      if (this.child.exitCode !== null || this.child.signalCode !== null) break;
      this.child.kill(signal);
    }
    await this.ended;
    this.connection.close();
  }

  of(id) {
    if (!this.updates.has(id)) this.updates.set(id, []);
    return this.updates.get(id);
  }

  said(id) {
    const chunks = this.of(id).filter((update) => update.sessionUpdate === "agent_message_chunk");
    return chunks.map((update) => update.content.text ?? "").join("");
  }

  calls(id) {
    return JSON.stringify(this.of(id).filter((update) => update.sessionUpdate.startsWith("tool_call")));
  }

  async initialize() {
    this.hello = await this.agent.request(initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
      clientInfo: { name: "podbot-matrix", version: "1" },
    });
    expect(this.hello.protocolVersion === 1, "version", this.hello.protocolVersion);
  }

  async open() {
    return await this.agent.request(session.new, { cwd: plan.workspace, mcpServers: [] });
  }

  async ask(sessionId, prompt, answer, ...more) {
    const content = [{ type: "text", text: plan.say[prompt] }, ...more];
    const done = await this.agent.request(session.prompt, { sessionId, prompt: content });
    expect(done.stopReason === "end_turn", "stop reason", done.stopReason);
    expect(this.said(sessionId).includes(plan.say[answer]), "answer", this.said(sessionId));
  }

  async edit(id) {
    await this.ask(id, "edit", "edited");
    expect(!this.asked, "the agent asked for permission");
    expect(this.calls(id).includes(`${plan.workspace}/${plan.say.file}`), "no path");
  }

  async terminal(id) {
    await this.ask(id, "run", "ran");
    expect(this.calls(id).includes(plan.say.printed), "the output did not come", this.calls(id).slice(-300));
  }

  async image(id) {
    if (!this.hello.agentCapabilities?.promptCapabilities?.image) throw new Absent("agent: it does not offer images");
    await this.ask(id, "look", "seen", { type: "image", data: plan.say.image, mimeType: "image/png" });
  }

  async cancel(sessionId) {
    let over = false;
    const prompt = [{ type: "text", text: plan.say.wait }];
    const turn = this.agent.request(session.prompt, { sessionId, prompt });
    turn.finally(() => (over = true)).catch(() => {});
    while (!runs()) {
      expect(!over, "the turn ended before");
      await sleep(50);
    }
    await sleep(plan.extra.runs_before_cancel * 1000);
    await this.agent.notify(session.cancel, { sessionId });
    const done = await turn;
    expect(done.stopReason === "cancelled", "stop reason", done.stopReason);
    const end = Date.now() + plan.extra.ends_after_cancel * 1000;
    while (runs() && Date.now() < end) await sleep(50);
    expect(!runs(), "the command still runs");
  }

  async two() {
    const one = (await this.open()).sessionId;
    const two = (await this.open()).sessionId;
    expect(one !== two, "one id for both");
    await Promise.all([this.ask(one, "first", "isFirst"), this.ask(two, "second", "isSecond")]);
    expect(!this.said(one).includes(plan.say.isSecond), "answers are mixed");
    expect(!this.said(two).includes(plan.say.isFirst), "answers are mixed");
  }

  async modes() {
    const { sessionId, modes, configOptions } = await this.open();
    if (modes) {
      const other = modes.availableModes.find((mode) => mode.id !== modes.currentModeId);
      await this.agent.request(session.setMode, { sessionId, modeId: other.id });
      return;
    }
    const option = (configOptions ?? []).find((each) => each.category === "mode");
    if (!option) throw new Absent("agent: it has no modes");
    const { value } = option.options.find((choice) => choice.value !== option.currentValue);
    const done = await this.agent.request(session.setConfigOption, { sessionId, configId: option.id, value });
    const now = done.configOptions.find((each) => each.id === option.id).currentValue;
    expect(now === value, "the mode stayed", now);
  }
}

async function connected(command, what) {
  const made = new Connection(command);
  try {
    return await what(made);
  } finally {
    await made.close();
  }
}

/** Everything that one connection can show; the session's id. */
const opened = await connected(plan.command, async (made) => {
  let id = "";
  await limited("initialize", () => made.initialize());
  await limited("new", async () => {
    id = (await made.open()).sessionId;
  });
  const steps = {
    prompt: () => made.ask(id, "say", "said"),
    edit: () => made.edit(id),
    "terminal output": () => made.terminal(id),
    images: () => made.image(id),
    cancel: () => made.cancel(id),
    "two sessions": () => made.two(),
    modes: () => made.modes(),
  };
  for (const [step, what] of Object.entries(steps)) {
    if (id && wants(step)) await limited(step, what);
  }
  if (plan.extra.by_minute) await sleep(61000 - (Date.now() % 60000)); // see BY_MINUTE in steps.py
  return id;
});

if (opened && wants("restart", "load", "resume")) {
  await connected(plan.command, async (made) => {
    await limited("restart", () => made.initialize());
    if (!wants("load")) return;
    await limited("load", async () => {
      if (!made.hello.agentCapabilities?.loadSession) throw new Absent("agent: it does not load sessions");
      await made.agent.request(session.load, { cwd: plan.workspace, sessionId: opened, mcpServers: [] });
      while (!made.said(opened).includes(plan.say.said)) await sleep(50); // Gemini CLI sends it behind its answer
    });
  });
}

if (opened && wants("resume")) {
  await connected(plan.command, (made) =>
    limited("resume", async () => {
      await made.initialize();
      if (!made.hello.agentCapabilities?.sessionCapabilities?.resume) throw new Absent("agent: it does not resume sessions");
      await made.agent.request(session.resume, { cwd: plan.workspace, sessionId: opened, mcpServers: [] });
      await made.ask(opened, "recall", "recalled");
    }),
  );
}

if (wants("permission", "KILL")) {
  await connected(plan.ask, async (made) => {
    await limited("permission", async () => {
      await made.initialize();
      await made.ask((await made.open()).sessionId, "allow", "allowed");
      expect(made.asked, "the agent did not ask");
    });
    if (wants("KILL")) made.child.kill("SIGKILL");
  });
}

if (wants("KILL")) {
  await connected(plan.command, (made) => limited("KILL", () => made.initialize()));
}
process.exit(0);
