// A Punctual worker in TypeScript: plain fetch, no packages, no build step.
//
//     node worker.ts --server http://127.0.0.1:8700 --queue work
//
// (Node 22.18 or later runs TypeScript as it is.) It takes tasks, works on several at a time,
// asks for more time while it works, and says how each one ended. SIGTERM or Ctrl-C ends it:
// what it has begun is finished first.
//
// A task here is {"greet": "Ana"}, and its result is {"greeting": "Hello, Ana!"}. Write your
// own work() and keep the rest.

import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

/** A task, as docs/protocol.md has it. */
interface Task {
  id: string;
  token: string;
  attempt: number;
  /** How long the task is ours without a sign of life, as ISO 8601. */
  ttr: string;
  payload?: any;
}

/** The task cannot be done now. `delay` says when to try again, such as "30s". */
class TryLater extends Error {
  delay?: string;
  constructor(reason: string, delay?: string) {
    super(reason);
    this.delay = delay;
  }
}

/** The task can never be done, so trying again would be a waste. */
class NeverMind extends Error {}

/**
 * Does one task and returns its result: anything that can be written as JSON.
 *
 * A task may come twice: its worker may have died before it could say that it was done. `task.id` is the same each time.
 */
async function work(task: Task): Promise<unknown> {
  const payload = task.payload ?? {};
  if (payload.greet === undefined) throw new NeverMind("there is nobody to greet");
  if (payload.greet === "nobody" && task.attempt === 1) throw new TryLater("nobody is there yet", "1s");
  // Longer than the time to run: a heartbeat keeps the task ours.
  if (payload.takes_s) await sleep(payload.takes_s * 1000);
  return { greeting: `Hello, ${payload.greet}!` };
}

const { values: options } = parseArgs({
  options: {
    server: { type: "string", default: process.env.PUNCTUAL_SERVER ?? "http://127.0.0.1:8700" },
    queue: { type: "string", default: "work" },
    concurrency: { type: "string", default: "4" },
    ttr: { type: "string" },
  },
});
const LONG_POLL = "20s";
const stop = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stop.abort());

/** The server did not do as asked. `code` never changes its meaning. */
class Refused extends Error {
  status: number;
  constructor(status: number, problem: { code?: string; detail?: string }) {
    super(`${status} ${problem.code}: ${problem.detail}`);
    this.status = status;
  }
}

async function post(path: string, body: object, signal?: AbortSignal): Promise<any> {
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (process.env.PUNCTUAL_KEY) headers.authorization = `Bearer ${process.env.PUNCTUAL_KEY}`;
  const answer = await fetch(options.server + path, { method: "POST", headers, body: JSON.stringify(body), signal });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, said);
  return said;
}

function report(task: Task, verb: string, more: object = {}): Promise<any> {
  return post(`/v1/tasks/${task.id}/${verb}`, { token: task.token, ...more });
}

/** Asks for more time while a task is being worked on, three times as often as needed. */
async function keepAlive(task: Task, done: AbortSignal): Promise<void> {
  while (true) {
    const isDone = await sleep((seconds(task.ttr) * 1000) / 3, false, { signal: done }).catch(() => true);
    if (isDone) return;
    try {
      await report(task, "touch", { ttr: task.ttr });
    } catch (error) {
      console.log(`${task.id}: no more time: ${error}`);
      if (error instanceof Refused) return;
    }
  }
}

/** Works on a task, and says how it ended. */
async function carryOut(task: Task): Promise<void> {
  const done = new AbortController();
  const beating = keepAlive(task, done.signal);
  let said: [verb: string, more: object];
  try {
    said = ["ack", { result: await work(task) }];
  } catch (error) {
    if (error instanceof NeverMind) said = ["bury", { error: error.message }];
    else if (error instanceof TryLater) said = ["nack", { error: error.message, delay: error.delay }];
    // A mistake in work() fails the attempt, not the worker.
    else said = ["nack", { error: String(error) }];
  }
  done.abort();
  await beating;
  await tell(task, ...said);
}

/** Tells the server, and tries again while it cannot be reached. */
async function tell(task: Task, verb: string, more: object): Promise<void> {
  for (const waitMs of [100, 500, 2_000, 5_000]) {
    try {
      const answer = await report(task, verb, more);
      return console.log(`${task.id}: ${verb} -> ${answer.state}`);
    } catch (error) {
      console.log(`${task.id}: ${verb}: ${error}`);
      // 409: it is late, and another worker may have the task by now.
      if (error instanceof Refused && ![429, 503].includes(error.status)) return;
    }
    await sleep(waitMs);
  }
}

/** Takes as many tasks as there are free hands, until it is told to stop. */
async function run(): Promise<void> {
  const concurrency = Number(options.concurrency);
  const busy = new Set<Promise<void>>();
  let failures = 0;
  while (!stop.signal.aborted) {
    if (busy.size >= concurrency) {
      await Promise.race(busy);
      continue;
    }
    const asked = { worker: `node-${process.pid}`, max: concurrency - busy.size, wait: LONG_POLL, ttr: options.ttr };
    let tasks: Task[] = [];
    try {
      // Stopping cuts the long poll off. What was just being handed out comes again after its time to run.
      tasks = (await post(`/v1/queues/${options.queue}/reserve`, asked, stop.signal)).tasks;
      failures = 0;
    } catch (error) {
      if (stop.signal.aborted) break;
      failures += 1;
      const pauseMs = Math.min(30_000, 200 * 2 ** failures) * (0.5 + Math.random() / 2);
      console.log(`reserve: ${error}; again in ${(pauseMs / 1000).toFixed(1)} s`);
      await sleep(pauseMs, undefined, { signal: stop.signal }).catch(() => {});
    }
    for (const task of tasks) {
      const carried = carryOut(task).finally(() => busy.delete(carried));
      busy.add(carried);
    }
  }
  console.log("stopping: what has begun is finished first");
  await Promise.all(busy);
}

/** Seconds of an ISO 8601 duration as the server writes it: PT1M30S, PT0.5S, P2D. */
function seconds(duration: string): number {
  const parts = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?$/.exec(duration) ?? [];
  const [days, hours, minutes, secs] = parts.slice(1).map((part) => Number(part ?? 0));
  return ((days * 24 + hours) * 60 + minutes) * 60 + secs;
}

console.log(`working on ${options.queue}`);
await run();
console.log("stopped");
