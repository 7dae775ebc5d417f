/** Runs the fuzz of authorization: random requests of users with one right, against a server with RBAC, each judged by its effect. */
import type { KubeObject } from "@longshore/kube";
import { noMeter, type RuntimeEnv, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { type ApiServerOptions, createApiServer } from "../../api-server.ts";
import { memoryStore } from "../../storage/object-store.ts";
import { aCustomKind } from "../custom-kinds.ts";
import { type FakeAnswer, fakeExchange } from "../fake-exchange.ts";
import { rightsOf } from "../rights.ts";
import { type FuzzKind, fuzzKinds, fuzzObject, tableOf } from "./kinds.ts";
import { type Change, type FuzzRight, type Spot, whyNotChange, whyNotShown, whyNotToken } from "./oracle.ts";
import { aRequest, aRight, draw, type FuzzRequest } from "./requests.ts";

/** What was done that the right was not for. */
export interface Violation {
  /** How many requests had been sent, this one included: with the seed, what repeats it. */
  readonly requests: number;
  readonly why: string;
  readonly right: FuzzRight;
  readonly request: FuzzRequest;
  readonly answer: FakeAnswer;
}

/** Options of the servers that are asked. */
export type FuzzOptions = Pick<ApiServerOptions, "authorizationModes" | "emulatedVersion">;

/** How it went. */
export interface FuzzReport {
  readonly violations: readonly Violation[];
  /** Answers by status code. */
  readonly codes: ReadonlyMap<number, number>;
  /** Requests that changed something, and answers that showed something. */
  readonly changes: number;
  readonly shown: number;
}

/** Requests sent to one server, and users that it has. */
const requestsOfWorld = 2000;
const usersOfWorld = 150;
const violationsMax = 20;

/** Sends `count` requests. */
export async function fuzzAuthorization(
  seed: number,
  count: number,
  options: FuzzOptions = {},
): Promise<FuzzReport> {
  const random = new SeededRandom(seed);
  const codes = new Map<number, number>();
  const violations: Violation[] = [];
  let [changes, shown] = [0, 0];
  let world: World | undefined;
  for (let i = 0; i < count && violations.length < violationsMax; i++) {
    if (world === undefined || i % requestsOfWorld === 0) world = aWorld(random, seed + i, options);
    const [user, right] = draw(random, world.users);
    const request = aRequest(random, right, world.read);
    const headers = { authorization: `Bearer ${user}`, ...request.headers };
    const answer = await world.send(request.method, request.url, headers, request.body);
    codes.set(answer.status, (codes.get(answer.status) ?? 0) + 1);
    const changed = world.changes();
    const seen = shownIn(answer.body);
    if (changed.length > 0) changes++;
    if (seen.length > 0) shown++;
    for (const why of judged(right, request, changed, seen, answer)) {
      violations.push({ requests: i + 1, why, right, request, answer });
    }
    if (changed.length > 0) world.restore();
  }
  return { violations, codes, changes, shown };
}

function* judged(
  right: FuzzRight,
  request: FuzzRequest,
  changes: readonly Change[],
  seen: readonly Spot[],
  { body }: FakeAnswer,
): Iterable<string> {
  for (const change of changes) {
    const why = whyNotChange(right, change);
    if (why !== undefined) yield why;
    if (/[?&]dryRun=All(&|$)/.test(request.url)) yield "a dry run changes the store";
  }
  const form = /^\{"type":"(ADDED|MODIFIED|DELETED)"/.test(body)
    ? "watch"
    : /"kind":\s*"[A-Za-z]*List"/.test(body.slice(0, 200))
      ? "list"
      : "object";
  // A table may show a list or one object: the right to either is enough.
  const forms = body.includes('"kind":"Table"') ? (["list", "object", "watch"] as const) : ([form] as const);
  for (const spot of seen) {
    const refusals = forms.map((one) => whyNotShown(right, spot, one));
    if (refusals.every((why) => why !== undefined)) yield refusals[0] as string;
  }
  const account = accountOfToken(body);
  const why = account === undefined ? undefined : whyNotToken(right, account);
  if (why !== undefined) yield why;
}

const markOf = (of: FuzzKind, namespace: string, name: string) => `mark(${tableOf(of)}|${namespace}|${name})`;

function shownIn(body: string): readonly Spot[] {
  return [...body.matchAll(/mark\(([^|)]+)\|([^|)]*)\|([^)]+)\)/g)].flatMap(
    ([, table, namespace = "", name = ""]) => {
      const of = fuzzKinds.find((kind) => tableOf(kind) === table);
      return of === undefined ? [] : [{ of, namespace, name }];
    },
  );
}

function accountOfToken(body: string): Spot | undefined {
  const payload = /"token":\s*"[^".]+\.([^".]+)\./.exec(body)?.[1];
  if (payload === undefined) return undefined;
  const { sub } = JSON.parse(Buffer.from(payload, "base64url").toString()) as { readonly sub: string };
  const [, , namespace = "", name = ""] = sub.split(":");
  return { of: fuzzKinds.find(({ plural }) => plural === "serviceaccounts") as FuzzKind, namespace, name };
}

type World = ReturnType<typeof aWorld>;

function aWorld(random: SeededRandom, seed: number, options: FuzzOptions) {
  const env: RuntimeEnv = {
    clock: new VirtualClock(),
    random: new SeededRandom(seed),
    logger: silentLogger,
    meter: noMeter,
  };
  const store = memoryStore({ historyLimit: 64 });
  const ids = Array.from({ length: usersOfWorld }, (_, i) => `user-${i}`);
  const server = createApiServer(env, {
    store,
    controllers: false,
    tokens: ids.map((id) => ({ token: id, user: { name: id, groups: [] } })),
    definitions: [
      aCustomKind("things", "Thing", "Namespaced"),
      aCustomKind("gadgets", "Gadget", "Cluster"),
      aCustomKind("namespaces", "Space", "Cluster"),
    ],
    ...options,
  });
  const rights = rightsOf(server.registry.context);
  const users = ids.map(() => {
    const right = aRight(random);
    return [rights.only(right), right] as const;
  });
  const seeded = fuzzKinds.flatMap((of) =>
    (of.plural === "namespaces" && of.group === "" ? ["team", "other", "a", "b"] : ["a", "b"]).flatMap(
      (name) => (of.namespaced ? ["team", "other"] : [""]).map((namespace) => ({ of, namespace, name })),
    ),
  );
  const put = ({ of, namespace, name }: Spot) => {
    const kind = server.registry.context.kinds.find(of.group, of.plural);
    const metadata = {
      uid: `uid-${name}`,
      creationTimestamp: "2026-01-01T00:00:00Z",
      labels: { app: "a" },
      annotations: { mark: markOf(of, namespace, name) },
    };
    const object = fuzzObject(of, namespace, name, metadata);
    store.commit([{ resource: tableOf(of), namespace, name, object: kind?.defaults?.(object) ?? object }]);
  };
  for (const spot of seeded) put(spot);
  const state = () =>
    new Map(
      fuzzKinds.flatMap((of) =>
        store
          .table(tableOf(of))
          .list()
          .map((object) => {
            const { namespace = "", name } = object.metadata;
            return [
              markOf(of, namespace, name),
              { of, namespace, name, object: object as KubeObject },
            ] as const;
          }),
      ),
    );
  let before = state();
  let { revision } = store;
  return {
    users,
    send: fakeExchange(env, server),
    read: (of: FuzzKind, namespace: string, name: string): KubeObject | undefined =>
      store.table(tableOf(of)).get(of.namespaced ? namespace : "", name),
    /** What changed since the last look. */
    changes(): readonly Change[] {
      if (store.revision === revision) return [];
      revision = store.revision;
      const after = state();
      const changed: Change[] = [];
      for (const [key, { object: now, ...spot }] of after) {
        const was = before.get(key)?.object;
        if (was !== now) changed.push({ ...spot, before: was, after: now });
      }
      for (const [key, { object: was, ...spot }] of before) {
        if (!after.has(key)) changed.push({ ...spot, before: was, after: undefined });
      }
      before = after;
      return changed;
    },
    /** Puts back what has been deleted or changed, so that there is always something to be found; some stays as it is for a while. */
    restore(): void {
      if (random.below(3, "restore") > 0) return;
      const known = new Set(seeded.map(({ of, namespace, name }) => markOf(of, namespace, name)));
      for (const [key, { of, namespace, name }] of before) {
        const isUsers = name.startsWith("user-") || name.includes(":") || !/^n\d+$|^new$/.test(name);
        if (!known.has(key) && !isUsers) store.commit([{ resource: tableOf(of), namespace, name }]);
      }
      for (const spot of seeded) put(spot);
      before = state();
      ({ revision } = store);
    },
  };
}
