/**
 * Sends the same random writes of several managers to two servers, and reports where they differ: in the object, in
 * the managers of its fields, or in the failure. The writes are drawn from a seed.
 */
import type { Call } from "./differences.ts";

/** Draws: a number below the bound. */
export type Draw = (bound: number) => number;

/** Numbers that follow from a seed (mulberry32). */
export function drawFrom(seed: number): Draw {
  let state = seed >>> 0;
  return (bound) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % bound;
  };
}

// biome-ignore lint/suspicious/noExplicitAny: objects of any kind are made and taken apart
type Any = any;

/** A kind of which random configurations can be made. */
export interface RandomKind {
  readonly name: string;
  readonly path: string;
  /** A whole object, good for a create. */
  whole(draw: Draw, name: string): Any;
  /** A part of an object, as a manager would apply it. */
  part(draw: Draw, name: string): Any;
  /** A status to write, where there is one. */
  status?(draw: Draw): Any;
}

const letters = ["a", "b", "c", "d"];

function maybe(draw: Draw, chance: number): boolean {
  return draw(100) < chance;
}

function someOf<T>(draw: Draw, items: readonly T[], chance = 50): T[] {
  return items.filter(() => maybe(draw, chance));
}

function shuffled<T>(draw: Draw, items: readonly T[]): T[] {
  const left = [...items];
  const result: T[] = [];
  while (left.length > 0) result.push(...left.splice(draw(left.length), 1));
  return result;
}

function values(draw: Draw, prefix = ""): Record<string, string> {
  return Object.fromEntries(someOf(draw, letters).map((key) => [`${prefix}${key}`, String(draw(2))]));
}

function metadata(draw: Draw, name: string): Any {
  return {
    name,
    ...(maybe(draw, 40) ? { labels: values(draw) } : {}),
    ...(maybe(draw, 30) ? { annotations: values(draw, "e.com/") } : {}),
    ...(maybe(draw, 25)
      ? { finalizers: shuffled(draw, someOf(draw, ["e.com/x", "e.com/y", "e.com/z"])) }
      : {}),
    ...(maybe(draw, 15)
      ? {
          ownerReferences: someOf(draw, letters).map((uid) => ({
            apiVersion: "v1",
            kind: "Pod",
            name: `p${draw(2)}`,
            uid,
          })),
        }
      : {}),
  };
}

const configMap: RandomKind = {
  name: "ConfigMap",
  path: "/api/v1/namespaces/default/configmaps",
  whole: (draw, name) => configMap.part(draw, name),
  part: (draw, name) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: metadata(draw, name),
    ...(maybe(draw, 80) ? { data: values(draw) } : {}),
    ...(maybe(draw, 10) ? { binaryData: { z: "AAAA" } } : {}),
  }),
};

const persistentVolume: RandomKind = {
  name: "PersistentVolume",
  path: "/api/v1/persistentvolumes",
  whole: (draw, name) => {
    const part = persistentVolume.part(draw, name);
    const spec = {
      ...part.spec,
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      csi: { driver: "d", volumeHandle: "h", ...part.spec.csi },
    };
    return { ...part, spec };
  },
  part: (draw, name) => ({
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: metadata(draw, name),
    spec: {
      ...(maybe(draw, 50) ? { capacity: { storage: draw(4) === 0 ? "1024Mi" : `${1 + draw(2)}Gi` } } : {}),
      ...(maybe(draw, 50) ? { accessModes: someOf(draw, ["ReadWriteOnce", "ReadOnlyMany"], 80) } : {}),
      ...(maybe(draw, 30) ? { persistentVolumeReclaimPolicy: ["Retain", "Delete"][draw(2)] } : {}),
      ...(maybe(draw, 30) ? { mountOptions: someOf(draw, letters) } : {}),
      ...(maybe(draw, 30) ? { storageClassName: `c${draw(2)}` } : {}),
      ...(maybe(draw, 20)
        ? { claimRef: { name: "x", namespace: "default", ...(maybe(draw, 50) ? { uid: "u" } : {}) } }
        : {}),
      ...(maybe(draw, 40)
        ? { csi: { driver: "d", volumeHandle: "h", ...(maybe(draw, 30) ? { fsType: "ext4" } : {}) } }
        : {}),
    },
  }),
  status: (draw) => ({
    phase: ["Available", "Bound"][draw(2)],
    ...(maybe(draw, 50) ? { message: `m${draw(2)}` } : {}),
  }),
};

function container(draw: Draw, name: string): Any {
  return {
    name,
    ...(maybe(draw, 70) ? { image: `i${draw(2)}` } : {}),
    ...(maybe(draw, 30)
      ? { env: shuffled(draw, someOf(draw, letters)).map((e) => ({ name: e, value: String(draw(2)) })) }
      : {}),
    ...(maybe(draw, 30)
      ? {
          ports: someOf(draw, [80, 81]).map((containerPort) => ({
            containerPort,
            ...(maybe(draw, 50) ? { protocol: ["TCP", "UDP"][draw(2)] } : {}),
          })),
        }
      : {}),
    ...(maybe(draw, 25) ? { resources: { limits: { cpu: ["1", "1000m", "2"][draw(3)] } } } : {}),
    ...(maybe(draw, 20) ? { args: someOf(draw, letters) } : {}),
    ...(maybe(draw, 20) ? { securityContext: { ...(maybe(draw, 50) ? { runAsUser: draw(2) } : {}) } } : {}),
  };
}

const deployment: RandomKind = {
  name: "Deployment",
  path: "/apis/apps/v1/namespaces/default/deployments",
  whole: (draw, name) => {
    const part = deployment.part(draw, name);
    const { containers = [] } = part.spec.template.spec;
    const all = [{ name: "w" }, ...containers].map((c: Any) => ({ image: "i", ...c }));
    part.spec.selector = { matchLabels: { app: "x" } };
    part.spec.template.metadata = { labels: { app: "x" } };
    part.spec.template.spec.containers = all;
    return part;
  },
  part: (draw, name) => ({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: metadata(draw, name),
    spec: {
      ...(maybe(draw, 40) ? { replicas: draw(3) } : {}),
      ...(maybe(draw, 60) ? { selector: { matchLabels: { app: "x" } } } : {}),
      ...(maybe(draw, 15) ? { strategy: { type: "RollingUpdate" } } : {}),
      template: {
        ...(maybe(draw, 60)
          ? { metadata: { labels: { app: "x", ...(maybe(draw, 40) ? values(draw) : {}) } } }
          : {}),
        spec: {
          ...(maybe(draw, 80)
            ? { containers: shuffled(draw, someOf(draw, ["x", "y", "z"])).map((c) => container(draw, c)) }
            : {}),
          ...(maybe(draw, 25)
            ? { volumes: someOf(draw, letters).map((v) => ({ name: v, emptyDir: {} })) }
            : {}),
          ...(maybe(draw, 15) ? { nodeSelector: values(draw) } : {}),
          ...(maybe(draw, 15)
            ? { tolerations: someOf(draw, letters).map((key) => ({ key, operator: "Exists" })) }
            : {}),
        },
      },
    },
  }),
  status: (draw) => ({
    replicas: draw(3),
    ...(maybe(draw, 50)
      ? {
          conditions: someOf(draw, ["Available", "Progressing"]).map((type) => ({
            type,
            status: ["True", "False"][draw(2)],
          })),
        }
      : {}),
  }),
};

/** The kinds whose writes are compared. */
export const randomKinds: readonly RandomKind[] = [configMap, persistentVolume, deployment];

/** One write that was answered differently. */
export interface WriteDifference {
  readonly what: string;
  readonly reference: string;
  readonly ours: string;
}

const applyType = "application/apply-patch+yaml";
const mergeType = "application/merge-patch+json";
const strategicType = "application/strategic-merge-patch+json";
const jsonType = "application/json-patch+json";
const managers = ["one", "two", "three", "kubectl"];

interface Write {
  readonly method: string;
  readonly at: string;
  readonly type?: string;
  /** The body for the object in its current state. */
  body(current: Any): unknown;
}

function randomWrite(kind: RandomKind, draw: Draw, name: string): Write {
  const one = `${kind.path}/${name}`;
  const manager = `fieldManager=${managers[draw(managers.length)]}`;
  const dry = maybe(draw, 8) ? "&dryRun=All" : "";
  const part = kind.part(draw, name);
  const { apiVersion: _a, kind: _k, ...patch } = part;
  switch (draw(10)) {
    case 0:
    case 1:
    case 2:
    case 3: {
      const force = maybe(draw, 35) ? "&force=true" : "";
      const body = maybe(draw, 60) ? part : kind.whole(draw, name);
      return { method: "PATCH", at: `${one}?${manager}${force}${dry}`, type: applyType, body: () => body };
    }
    case 4:
    case 5: {
      return {
        method: "PATCH",
        at: `${one}?${manager}${dry}`,
        type: mergeType,
        body: () => withNulls(patch, draw),
      };
    }
    case 6:
      return { method: "PATCH", at: `${one}?${manager}${dry}`, type: strategicType, body: () => patch };
    case 7: {
      if (maybe(draw, 15)) {
        return {
          method: "PATCH",
          at: `${one}?${manager}`,
          type: jsonType,
          body: () => [{ op: "add", path: "/metadata/managedFields", value: maybe(draw, 50) ? [] : [{}] }],
        };
      }
      const value = values(draw);
      return {
        method: "PATCH",
        at: `${one}?${manager}${dry}`,
        type: jsonType,
        body: () => [{ op: "add", path: "/metadata/labels", value }],
      };
    }
    case 8: {
      if (kind.status !== undefined) {
        const status = kind.status(draw);
        return {
          method: "PATCH",
          at: `${one}/status?${manager}${dry}`,
          type: mergeType,
          body: () => ({ status }),
        };
      }
      return { method: "PATCH", at: `${one}?${manager}${dry}`, type: mergeType, body: () => patch };
    }
    default: {
      const whole = kind.whole(draw, name);
      return {
        method: "PUT",
        at: `${one}?${manager}${dry}`,
        body: (current) => ({
          ...whole,
          metadata: {
            ...whole.metadata,
            ...(current?.metadata === undefined
              ? {}
              : { uid: current.metadata.uid, resourceVersion: current.metadata.resourceVersion }),
          },
        }),
      };
    }
  }
}

/** The patch with some members null, which takes them away. */
function withNulls(patch: Any, draw: Draw): Any {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  return Object.fromEntries(
    Object.entries(patch).map(([key, value]) => {
      if (key === "selector") return [key, value];
      const mayGo = key !== "metadata" && key !== "name" && key !== "spec";
      return [key, mayGo && maybe(draw, 10) ? null : withNulls(value, draw)];
    }),
  );
}

/** Sequences of writes to objects of a kind. */
export async function* writeDifferences(
  reference: Call,
  ours: Call,
  kind: RandomKind,
  options: {
    readonly seed: number;
    readonly sequences: number;
    readonly writes: number;
    readonly prefix?: string;
  },
): AsyncIterable<WriteDifference> {
  for (let s = 0; s < options.sequences; s++) {
    const draw = drawFrom(options.seed * 1000 + s);
    const name = `${options.prefix ?? "r"}-${options.seed}-${s}`;
    const current: [Any, Any] = [undefined, undefined];
    const history: string[] = [];
    for (let i = 0; i < options.writes; i++) {
      const write = i === 0 && maybe(draw, 50) ? firstWrite(kind, draw, name) : randomWrite(kind, draw, name);
      // What is drawn for a body is drawn once, for both.
      const template = write.body(undefined);
      const bodies = current.map((object) => (write.method === "PUT" ? write.body(object) : template));
      const [a, b] = await Promise.all([
        reference(write.method, write.at, bodies[0], write.type),
        ours(write.method, write.at, bodies[1], write.type),
      ]);
      history.push(`${write.method} ${write.at} ${write.type ?? ""} ${JSON.stringify(template)}`);
      const [left, right] = [shown(a), shown(b)];
      if (left !== right) {
        yield { what: `sequence ${s}, write ${i}:\n${history.join("\n")}`, reference: left, ours: right };
        break;
      }
      if (a.status < 300 && !write.at.includes("dryRun")) {
        current[0] = a.body;
        current[1] = b.body;
      }
    }
  }
}

function firstWrite(kind: RandomKind, draw: Draw, name: string): Write {
  const whole = kind.whole(draw, name);
  const manager = managers[draw(managers.length)];
  return { method: "POST", at: `${kind.path}?fieldManager=${manager}`, body: () => whole };
}

const noise: ReadonlySet<string> = new Set(["uid", "creationTimestamp", "resourceVersion", "selfLink"]);

/** What clients see of an answer, without what differs between any two servers. */
export function shown({ status, body }: { readonly status: number; readonly body: Any }): string {
  if (body?.kind === "Status") {
    const { causes = [] } = body.details ?? {};
    // What a rule says is compared elsewhere; here it is that it says something of the same fields.
    const isRule = status === 422;
    const lines: string[] = causes.map((c: Any) =>
      isRule ? placeOf(c.field) : `${beginOf(c.field ?? "")}: ${c.message} (${c.reason})`,
    );
    const message = isRule || causes.length > 0 ? "" : body.message;
    const sorted = isRule ? [...new Set(lines)].sort() : lines.sort();
    return [`${status} ${body.reason} ${message}`, ...sorted].join("\n");
  }
  const { managedFields, ...rest } = body?.metadata ?? {};
  const meta = Object.fromEntries(Object.entries(rest).filter(([key]) => !noise.has(key)));
  const managed = (managedFields ?? []).map(
    (entry: Any) =>
      `  ${entry.manager} ${entry.operation} ${entry.apiVersion} ${entry.subresource ?? ""} ${entry.time === undefined ? "no time" : "time"} ${JSON.stringify(entry.fieldsV1)}`,
  );
  return [`${status} ${JSON.stringify(inOrder({ ...body, metadata: meta }))}`, ...managed.sort()].join("\n");
}

/** A field without what the reference adds to it. */
const placeOf = (field: string) => (field.split(":")[0] ?? "").replaceAll(/\[\d+\]/g, "");

/** The first parts of a path: of long paths the reference, in 1.20, reports some twice instead of others. */
const beginOf = (path: string) => (path.match(/\.[^.[]+|\[[^\]]*\]/g) ?? []).slice(0, 3).join("");

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(
        ([, member]) =>
          member !== null && !(Array.isArray(member) && member.length === 0) && !isHollow(member),
      )
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, inOrder(member)]),
  );
}

function isHollow(value: unknown): boolean {
  return (
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    Object.values(value).every((v) => v === null || isHollow(v))
  );
}
