/** Definitions whose custom resources, and roles whose rules, are as much work as they can be made. */
import { changing, creating, type HeavyRequest, many, members, type SendJson } from "./heavy-request.ts";

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

interface Attack {
  readonly name: string;
  /** The group of its kind, before `.heavy.example.com`; no other has it. */
  readonly id: string;
  /** The schema of `spec`. */
  readonly spec: object;
  readonly version?: object;
  /** The `spec` of the object that is created. */
  readonly value: () => unknown;
  /** The `spec` of what is there before: the request is an update of it. */
  readonly before?: () => unknown;
}

const groupOf = (id: string) => `${id}.heavy.example.com`;

function definitionOf({ id, spec, version = {} }: Attack): object {
  const openAPIV3Schema = { type: "object", properties: { spec } };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `things.${groupOf(id)}` },
    spec: {
      group: groupOf(id),
      scope: "Namespaced",
      names: { plural: "things", kind: "Thing" },
      versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema }, ...version }],
    },
  };
}

function objectOf({ id }: Attack, spec: unknown, rest: object = {}): object {
  return { apiVersion: `${groupOf(id)}/v1`, kind: "Thing", metadata: { name: "one", ...rest }, spec };
}

const objectsPath = ({ id }: Attack) => `/apis/${groupOf(id)}/v1/namespaces/default/things`;

/** Sends it until the status is the one that is waited for: a definition is served soon, and not at once. */
async function until(status: number, request: () => ReturnType<SendJson>): ReturnType<SendJson> {
  for (let left = 50; ; left--) {
    const answer = await request();
    if (answer.status === status) return answer;
    if (left === 0) throw new Error(`status ${answer.status}: ${JSON.stringify(answer.body).slice(0, 500)}`);
  }
}

function requestOf(attack: Attack): HeavyRequest {
  const path = objectsPath(attack);
  let resourceVersion = "";
  return {
    name: attack.name,
    async prepare(send) {
      await until(201, () => send("POST", definitionsPath, definitionOf(attack)));
      await until(200, () => send("GET", path));
      if (attack.before === undefined) return;
      const { body } = await until(201, () => send("POST", path, objectOf(attack, attack.before?.())));
      resourceVersion = (body as { metadata: { resourceVersion: string } }).metadata.resourceVersion;
    },
    async run(send) {
      if (attack.before === undefined) {
        return (await send("POST", path, objectOf(attack, attack.value()))).status;
      }
      const changed = objectOf(attack, attack.value(), { resourceVersion });
      return (await send("PUT", `${path}/one`, changed)).status;
    },
  };
}

const text = { type: "string" };
const texts = { type: "array", items: text };
const numbers = { type: "array", items: { type: "integer" } };

/** A `spec` of these members, for which a rule is checked. */
function ruled(properties: object, rule: string): object {
  return { type: "object", properties, "x-kubernetes-validations": [{ rule }] };
}

/** `first`, and `times` steps that each make more of what the one before has made. */
const growing = (first: string, step: string, times: number) =>
  `[${first}]${many(times, () => `.map(x, ${step})`).join("")}.size() == 0`;

/** A list that holds the first one 2^30 times, by way of lists that hold others twice. */
const nested = (first: string) => `[${first}]${".map(x, dyn([x, x]))".repeat(30)}`;

/** Each `spec` breaks a rule of its definition, or takes more work than it may: the answer is 422. */
const rules: readonly Attack[] = [
  {
    name: "rule that doubles a text 30 times",
    id: "text",
    spec: ruled({ s: text }, growing("self.s", "x + x", 30)),
    value: () => ({ s: "a".repeat(100_000) }),
  },
  {
    name: "rule that doubles a list 30 times",
    id: "list",
    spec: ruled({ l: numbers }, growing("self.l", "x + x", 30)),
    value: () => ({ l: many(100_000, (i) => i) }),
  },
  {
    name: "rule that joins long texts, again and again",
    id: "join",
    spec: ruled({ s: text }, growing("self.s", "[x, x, x, x, x, x, x, x].join(x)", 10)),
    value: () => ({ s: "a".repeat(1000) }),
  },
  {
    name: "rule that replaces every letter by a long text",
    id: "replace",
    spec: ruled({ s: text }, growing("self.s", 'x.replace("a", self.s)', 5)),
    value: () => ({ s: "a".repeat(2000) }),
  },
  {
    name: "rule that splits a long text into letters, for each of them",
    id: "split",
    spec: ruled({ s: text }, 'self.s.split("").all(a, self.s.split("").size() > 0)'),
    value: () => ({ s: "é".repeat(500_000) }),
  },
  {
    name: "rule of three macros within one another",
    id: "cube",
    spec: ruled({ l: numbers }, "self.l.all(a, self.l.all(b, self.l.all(c, a + b + c >= 0)))"),
    value: () => ({ l: many(10_000, (i) => i) }),
  },
  {
    name: "rule whose errors are all caught",
    id: "errors",
    spec: ruled({ l: numbers }, "self.l.exists(a, self.l.exists(b, self.l[-1] == a || self.l[-2] == b))"),
    value: () => ({ l: many(20_000, (i) => i) }),
  },
  {
    name: "rule that compares two lists of a billion items that share their parts",
    id: "shared",
    spec: ruled({ l: numbers }, `${nested("self.l")} == ${nested("(self.l + [])")}`),
    value: () => ({ l: many(10, (i) => i) }),
  },
  {
    name: "rule with a pattern of many parts on a long text",
    id: "pattern-rule",
    spec: ruled({ s: text }, 'self.s.matches("^(?:[ab]?){900}[cd]$")'),
    value: () => ({ s: "ab".repeat(500_000) }),
  },
  {
    name: "rule that looks for a pattern from every letter on",
    id: "find-all",
    spec: ruled({ s: text }, 'self.s.findAll("a.*c|a").size() == 0'),
    value: () => ({ s: "a".repeat(1_000_000) }),
  },
  {
    name: "rule that reads a long text as a duration",
    id: "duration",
    spec: ruled({ s: text }, 'duration(self.s) > duration("1h")'),
    value: () => ({ s: "1".repeat(1_000_000) }),
  },
  {
    name: "rule with a pattern from the object",
    id: "own-pattern",
    spec: ruled({ l: texts }, 'self.l.all(p, "x".matches(p))'),
    value: () => ({ l: many(1000, (i) => `x{1,1000}?(?:${"[a-z]{900}?|".repeat(15)}x)${i}?`) }),
  },
  {
    name: "hundred rules, each as expensive as it may be",
    id: "many-rules",
    spec: {
      type: "object",
      properties: { l: numbers },
      "x-kubernetes-validations": many(100, (i) => ({
        rule: `self.l.all(a, self.l.all(b, a + b >= -${i}))`,
      })),
    },
    value: () => ({ l: many(350, (i) => i) }),
  },
];

/** Schemas and objects that are large together: what one asks for is asked of every part of the other. */
const schemas: readonly Attack[] = [
  {
    name: "pattern of many parts on a long text",
    id: "pattern",
    spec: { type: "object", properties: { s: { type: "string", pattern: "(?:[ab]?){900}[cd]" } } },
    value: () => ({ s: "ab".repeat(500_000) }),
  },
  {
    name: "100,000 items, none of 50,000 known values",
    id: "enum",
    spec: { type: "array", items: { type: "string", enum: many(50_000, (i) => `known-${i}`) } },
    value: () => many(100_000, (i) => `other-${i}`),
  },
  {
    name: "100,000 items without 20,000 required members",
    id: "required",
    spec: { type: "array", items: { type: "object", required: many(20_000, (i) => `m${i}`) } },
    value: () => many(100_000, () => ({})),
  },
  {
    name: "100,000 items with 10,000 alternatives",
    id: "any-of",
    spec: {
      type: "array",
      items: { type: "integer", anyOf: many(10_000, (i) => ({ minimum: 1_000_000 + i })) },
    },
    value: () => many(100_000, (i) => i),
  },
  {
    name: "300,000 items, each to be filled with 5,000 defaults",
    id: "defaults",
    spec: {
      type: "array",
      items: {
        type: "object",
        properties: members(5000, (i) => [`m${i}`, { type: "string", default: "x" }]),
      },
    },
    value: () => many(300_000, () => ({})),
  },
  {
    name: "500,000 items of the wrong type",
    id: "types",
    spec: numbers,
    value: () => many(500_000, () => "a"),
  },
  {
    name: "update of a list of 30,000 items that are distinguished by keys",
    id: "list-map",
    spec: {
      type: "array",
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["k"],
      items: {
        type: "object",
        required: ["k"],
        properties: { k: text, v: text },
        "x-kubernetes-validations": [{ rule: "self.v == oldSelf.v" }],
      },
    },
    before: () => many(30_000, (i) => ({ k: `k${i}`, v: "x" })),
    value: () => many(30_000, (i) => ({ k: `k${30_000 - i}`, v: "y" })),
  },
  {
    name: "update of a member whose name has 500,000 dots",
    id: "dots",
    spec: { type: "object", additionalProperties: { type: "integer" } },
    before: () => ({}),
    value: () => ({ ["a.".repeat(500_000)]: "x" }),
  },
];

const rbac = "/apis/rbac.authorization.k8s.io/v1";

const words = (word: string, count: number) => many(count, (i) => `${word}${i}`);

/** A role of 60 × 60 × 60 rights, written by a user who holds them, rule by rule. */
export const manyRights = {
  apiGroups: words("group", 60),
  resources: words("resource", 60),
  verbs: words("verb", 60),
};

const roles: readonly HeavyRequest[] = [
  creating("cluster role of 216,000 rights", `${rbac}/clusterroles`, () => ({
    metadata: { name: "heavy" },
    rules: [manyRights],
  })),
  changing({
    name: "cluster role that is given 216,000 rights",
    path: `${rbac}/clusterroles`,
    of: { metadata: { name: "heavier" } },
    contentType: "application/merge-patch+json",
    body: () => ({ rules: [manyRights] }),
  }),
];

/** Those whose answer is 422. */
export const refusedCustom: readonly HeavyRequest[] = [...rules, ...schemas].map(requestOf);

/** Heavy requests with custom resource definitions and roles. */
export const heavyCustom: readonly HeavyRequest[] = [...refusedCustom, ...roles];
