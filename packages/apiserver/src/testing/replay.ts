/** Replays recorded scenarios against a server over HTTPS, and says where its answers differ. */
import type { IncomingMessage } from "node:http";
import { gunzipSync } from "node:zlib";
import { differences, fillIn, type Known } from "./expectation.ts";
import type { Exchange, HttpsConnections } from "./http.ts";
import { type ExpectedProto, type ProtoEvent, protoDifferences, protoFrames } from "./protobuf-answer.ts";

/** A file of recorded scenarios. */
export interface Recording {
  readonly topic: string;
  readonly server?: { readonly anonymousAuth?: boolean };
  readonly scenarios: readonly Scenario[];
}

/** Steps that depend on each other. */
export interface Scenario {
  readonly name: string;
  readonly steps: readonly Step[];
}

/** One step, in one of its forms: request, watch, events, close, pause or compact. */
export interface Step {
  readonly method?: string;
  readonly path?: string;
  readonly query?: Readonly<Record<string, string | readonly string[]>>;
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly as?: "admin" | "user" | "none" | "invalid" | { readonly token: string };
  readonly body?: unknown;
  readonly bodyText?: string;
  readonly bodyBase64?: string;
  readonly fill?: { readonly at: string; readonly count: number };
  readonly retry?: number;
  readonly save?: Readonly<Record<string, string>>;
  readonly expect?: Expected | readonly ExpectedEvent[];
  readonly watch?: string;
  readonly events?: string;
  readonly within?: number;
  readonly order?: "any";
  readonly then?: "end";
  readonly close?: string;
  readonly pause?: number;
  readonly compact?: string | number;
}

interface Expected {
  readonly status: number;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly text?: string;
  readonly bytes?: string;
  readonly proto?: ExpectedProto;
}

interface ExpectedEvent {
  readonly type: string;
  readonly object?: unknown;
  readonly proto?: ExpectedProto;
}

/** The server that is held to the recording. */
export interface Replayed {
  readonly to: HttpsConnections;
  readonly tokens: { readonly admin: string; readonly user: string };
  /** Left out where there is no way to have the server forget: the step is then passed over. */
  compact?(revision: number): Promise<void> | void;
  /** Longest wait for events or for a server that may lag, in milliseconds; default that of a server in this process. */
  readonly waitMsMax?: number;
  /** The server has caches that need the recorded pauses. */
  readonly pauses?: boolean;
}

const waitMsDefault = 1500;

interface State {
  readonly server: Replayed;
  readonly saved: Map<string, string>;
  readonly watches: Map<string, WatchedStream>;
  newest: bigint;
}

/** What differs at the first step whose answer is another one; empty when the scenario passes. */
export async function replayScenario(scenario: Scenario, server: Replayed): Promise<readonly string[]> {
  const state: State = { server, saved: new Map(), watches: new Map(), newest: 0n };
  try {
    for (const [i, step] of scenario.steps.entries()) {
      const found = await takeStep(state, step);
      if (found.length > 0) {
        const what =
          step.path === undefined
            ? JSON.stringify(step).slice(0, 60)
            : `${step.method ?? "GET"} ${step.path}`;
        return found.map((difference) => `step ${i} (${what}): ${difference}`);
      }
    }
    return [];
  } catch (error) {
    return [`the replay failed: ${(error as Error).message}`];
  } finally {
    for (const watch of state.watches.values()) watch.close();
  }
}

async function takeStep(state: State, step: Step): Promise<readonly string[]> {
  if (step.pause !== undefined) {
    const pauseMs = state.server.pauses === true ? step.pause * 1000 : 0;
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    return [];
  }
  if (step.compact !== undefined) {
    await state.server.compact?.(Number(fillIn(String(step.compact), state.saved)));
    return [];
  }
  if (step.events !== undefined) return takeEvents(state, step, step.events);
  if (step.close !== undefined) {
    const watch = state.watches.get(step.close);
    await new Promise((resolve) => setTimeout(resolve, 20));
    watch?.close();
    return (watch?.unread ?? []).map(
      (event) => `an unexpected event: ${JSON.stringify(event).slice(0, 200)}`,
    );
  }
  if (step.watch !== undefined) return openWatch(state, step, step.watch);
  return request(state, step);
}

async function request(state: State, step: Step): Promise<readonly string[]> {
  const exchange = exchangeOf(state, step);
  const deadline = performance.now() + Math.min((step.retry ?? 0) * 1000, waitMsOf(state));
  for (;;) {
    const answer = await state.server.to.send(exchange);
    const body = answer.headers["content-encoding"] === "gzip" ? gunzipSync(answer.body) : answer.body;
    const given = { status: answer.status, headers: answer.headers, body };
    const found = compare(state, step.expect as Expected, given);
    if (found.length > 0 && performance.now() < deadline) continue;
    const json = jsonOf(body);
    note(state, json);
    return found.length > 0 ? found : keep(state, step, json);
  }
}

/** Keeps what later steps refer to. */
function keep(state: State, step: Step, json: unknown): readonly string[] {
  return Object.entries(step.save ?? {}).flatMap(([name, pointer]) => {
    const value = at(json, pointer);
    state.saved.set(name, String(value));
    return value === undefined ? [`nothing is at ${pointer}`] : [];
  });
}

async function openWatch(state: State, step: Step, name: string): Promise<readonly string[]> {
  const response = await state.server.to.open(exchangeOf(state, { ...step, method: "GET" }));
  const status = response.statusCode ?? 0;
  const { headers } = response;
  if (status !== 200) {
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    return compare(state, step.expect as Expected, { status, headers, body: Buffer.concat(chunks) });
  }
  state.watches.set(name, new WatchedStream(response));
  const { body: _, ...expected } = (step.expect ?? { status: 200 }) as Expected;
  return compare(state, expected, { status, headers, body: Buffer.alloc(0) });
}

async function takeEvents(state: State, step: Step, name: string): Promise<readonly string[]> {
  const watch = state.watches.get(name);
  if (watch === undefined) return [`the watch ${name} is not open`];
  const expected = fillIn((step.expect ?? []) as readonly ExpectedEvent[], state.saved);
  const waitMs = Math.max(waitMsOf(state), (step.within ?? 0) * 1000);
  const events = await watch.take(expected.length, waitMs);
  const known = knownTo(state);
  if (expected.some(({ proto }) => proto !== undefined)) return protoEvents(expected, events, known);
  const wanted = step.order === "any" ? { $unordered: expected } : expected;
  const found = [...differences(wanted, events, "events", known)];
  const versions = events.map(versionOf);
  if (step.order !== "any" && versions.some((v, i) => i > 0 && v < (versions[i - 1] ?? 0n))) {
    found.push("the versions of the events do not rise");
  }
  for (const event of events) note(state, (event as { object?: unknown }).object);
  if (step.then === "end" && !(await watch.ended(waitMs))) found.push("the stream does not end");
  return [...found, ...(found.length > 0 ? [] : keep(state, step, events))];
}

function versionOf(event: unknown): bigint {
  const version = at(event, "/object/metadata/resourceVersion");
  return typeof version === "string" && /^\d+$/.test(version) ? BigInt(version) : 0n;
}

interface Given {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

function compare(state: State, expect: Expected, given: Given): readonly string[] {
  const expected = fillIn(expect, state.saved);
  const known = knownTo(state);
  const text = given.body.toString();
  const found =
    expected.status === given.status
      ? []
      : [`status ${expected.status} is expected, not ${given.status}: ${text.slice(0, 300)}`];
  const plain = (type: unknown) =>
    String(type ?? "")
      .toLowerCase()
      .replace(/\s|;?charset=[^;]*/g, "");
  const type = given.headers["content-type"];
  if (expected.type !== undefined && plain(type) !== plain(expected.type)) {
    found.push(`the type ${expected.type} is expected, not ${type}`);
  }
  for (const [name, value] of Object.entries(expected.headers ?? {})) {
    found.push(...differences(value, given.headers[name.toLowerCase()], `header ${name}`, known));
  }
  if (expected.body !== undefined) found.push(...differences(expected.body, jsonOf(given.body), "", known));
  if (expected.text !== undefined) found.push(...differences(expected.text, text, "text", known));
  if (expected.bytes !== undefined && given.body.length === 0) found.push("the answer has no bytes");
  if (expected.proto !== undefined)
    found.push(...protoDifferences(expected.proto, given.body, "proto", known));
  return found;
}

function waitMsOf({ server }: State): number {
  return server.waitMsMax ?? waitMsDefault;
}

function knownTo({ saved, newest }: State): Known {
  return { saved, newest };
}

function protoEvents(
  expected: readonly ExpectedEvent[],
  events: readonly unknown[],
  known: Known,
): readonly string[] {
  if (events.length !== expected.length)
    return [`${expected.length} events are expected, not ${events.length}`];
  return expected.flatMap(({ type, proto }, i) => {
    const event = events[i] as ProtoEvent;
    const found = event.type === type ? [] : [`event ${i} is ${event.type}, expected is ${type}`];
    return [
      ...found,
      ...(proto === undefined ? [] : protoDifferences(proto, event.proto, `event ${i}`, known)),
    ];
  });
}

function jsonOf(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}

/** Remembers the newest version in an answer. */
function note(state: State, json: unknown): void {
  if (typeof json !== "object" || json === null) return;
  for (const [key, value] of Object.entries(json)) {
    if (key === "resourceVersion" && typeof value === "string" && /^\d+$/.test(value)) {
      if (BigInt(value) > state.newest) state.newest = BigInt(value);
    } else note(state, value);
  }
}

function exchangeOf(state: State, given: Step): Exchange {
  const { expect: _e, save: _s, ...rest } = given;
  const step = fillIn(rest, state.saved) as Step;
  const body = bodyOf(step);
  const headers: Record<string, string> = { accept: "application/json" };
  if (body !== undefined && step.bodyBase64 === undefined) headers["content-type"] = "application/json";
  const token = tokenOf(state, step.as);
  if (token !== undefined) headers.authorization = `Bearer ${token}`;
  for (const [name, value] of Object.entries(step.headers ?? {})) {
    if (value === null) delete headers[name.toLowerCase()];
    else headers[name.toLowerCase()] = value;
  }
  const query = Object.entries(step.query ?? {}).flatMap(([key, value]) =>
    [value].flat().map((one) => `${encodeURIComponent(key)}=${encodeURIComponent(one)}`),
  );
  return {
    method: step.method ?? "GET",
    path: `${step.path ?? "/"}${query.length === 0 ? "" : `?${query.join("&")}`}`,
    headers,
    ...(body === undefined ? {} : { body }),
  };
}

function bodyOf({ body, bodyText, bodyBase64, fill }: Step): string | Buffer | undefined {
  if (bodyBase64 !== undefined) return Buffer.from(bodyBase64, "base64");
  if (bodyText !== undefined) return bodyText;
  if (body === undefined || fill === undefined) return body === undefined ? undefined : JSON.stringify(body);
  const copy = structuredClone(body);
  const cut = fill.at.lastIndexOf("/");
  const parent = at(copy, fill.at.slice(0, cut)) as Record<string, unknown>;
  parent[fill.at.slice(cut + 1)] = "x".repeat(fill.count);
  return JSON.stringify(copy);
}

function tokenOf({ server }: State, as: Step["as"] = "admin"): string | undefined {
  if (typeof as === "object") return as.token;
  if (as === "none") return undefined;
  return as === "invalid" ? "no-such-token" : server.tokens[as];
}

/** The value at a JSON pointer. */
function at(value: unknown, pointer: string): unknown {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce<unknown>((inner, key) => (inner as Readonly<Record<string, unknown>> | undefined)?.[key], value);
}

/** The events of one open watch, as they come. */
class WatchedStream {
  readonly unread: unknown[] = [];
  readonly #response: IncomingMessage;
  #rest: Buffer = Buffer.alloc(0);
  #changed: () => void = () => {};
  #isEnded = false;

  constructor(response: IncomingMessage) {
    this.#response = response;
    const isProtobuf = response.headers["content-type"]?.startsWith("application/vnd.kubernetes.protobuf");
    response.on("data", (chunk: Buffer) => {
      this.#rest = Buffer.concat([this.#rest, chunk]);
      if (isProtobuf === true) {
        const { frames, rest } = protoFrames(this.#rest);
        this.unread.push(...frames);
        this.#rest = rest;
      } else this.#takeLines();
      this.#changed();
    });
    response.on("error", () => {});
    response.on("close", () => {
      this.#isEnded = true;
      this.#changed();
    });
  }

  #takeLines(): void {
    for (let end = this.#rest.indexOf(10); end >= 0; end = this.#rest.indexOf(10)) {
      this.unread.push(JSON.parse(this.#rest.subarray(0, end).toString()) as unknown);
      this.#rest = this.#rest.subarray(end + 1);
    }
  }

  /** The next events, fewer when no more come in time. */
  async take(count: number, waitMs: number): Promise<readonly unknown[]> {
    await this.#until(() => this.unread.length >= count || this.#isEnded, waitMs);
    return this.unread.splice(0, count);
  }

  ended(waitMs: number): Promise<boolean> {
    return this.#until(() => this.#isEnded, waitMs);
  }

  close(): void {
    this.#response.destroy();
  }

  async #until(holds: () => boolean, waitMs: number): Promise<boolean> {
    if (holds()) return true;
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(holds()), waitMs);
      this.#changed = () => {
        if (!holds()) return;
        clearTimeout(timer);
        resolve(true);
      };
    });
  }
}
