/** What writes do to managers, and applies to objects, on types that show every rule. */
import type { KubeObject } from "@longshore/kube";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { typeOfKind } from "../schema/type-of-kind.ts";
import { emulatedVersion } from "../versions/emulated-version.ts";
import { createdSet } from "./created-set.ts";
import {
  type Applied,
  applyConfiguration,
  managersAfterCreate,
  managersAfterUpdate,
  type Writer,
} from "./field-manager.ts";
import { setOf, shownPaths, toFieldsV1 } from "./field-set.ts";
import type { FieldView } from "./field-view.ts";
import { type Managers, noManagers, readManagers, writeManagers } from "./managers.ts";

type Loose = Readonly<Record<string, unknown>>;

function viewOf(kind: string, group = "", version = "1.36"): FieldView {
  const emulated = emulatedVersion(version);
  return {
    apiVersion: group === "" ? "v1" : `${group}/v1`,
    type: typeOfKind({ group, kind }, "v1", emulated),
    convert: (object) => object,
    ignored: undefined,
    appliedOrder: emulated.has("appliedOrder"),
    emptyMembers: emulated.has("emptyFieldsApplied"),
  };
}

const maps = viewOf("ConfigMap");
const pods = viewOf("Pod");
const empty: KubeObject = {};

const as = (manager: string, operation: "Apply" | "Update" = "Apply", second = 0): Writer => ({
  manager,
  operation,
  apiVersion: "v1",
  subresource: "",
  time: `2026-01-01T00:00:${String(second).padStart(2, "0")}Z`,
});

const map = (data: Loose, metadata: Loose = {}) =>
  ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c", ...metadata }, data }) as KubeObject;
const pod = (spec: Loose) => ({ apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec }) as KubeObject;

interface State {
  readonly object: KubeObject;
  readonly managers: Managers;
}

const start: State = { object: empty, managers: noManagers };

function apply(
  view: FieldView,
  state: State,
  writer: Writer,
  configuration: KubeObject,
  force = false,
): State {
  const applied = applyConfiguration(view, state.object, configuration, state.managers, writer, force);
  if (applied.type === "conflicts") throw new Error(conflictsOf(applied).join(" "));
  return applied;
}

function update(view: FieldView, state: State, writer: Writer, object: KubeObject): State {
  return { object, managers: managersAfterUpdate(view, state.object, object, state.managers, writer) };
}

const conflictsOf = (applied: Applied) =>
  applied.type === "conflicts"
    ? applied.conflicts.flatMap(({ manager, set }) =>
        shownPaths(set).map((path) => `${manager.manager}${path}`),
      )
    : [];

const fieldsOf = ({ managers }: State) =>
  Object.fromEntries(
    (writeManagers(managers) ?? []).map(({ manager, operation, fieldsV1 }) => [
      `${manager} ${operation}`,
      fieldsV1,
    ]),
  );

/** The object as it is stored: what is null is not there. */
const shown = ({ object }: State) =>
  JSON.parse(JSON.stringify(object, (_, value) => value ?? undefined)) as unknown;

describe("an apply", () => {
  it("again changes nothing, not even a time", () => {
    const once = apply(maps, start, as("one"), map({ a: "1" }));
    const twice = apply(maps, once, as("one", "Apply", 5), map({ a: "1" }));
    expect(twice.object).toEqual(once.object);
    expect(writeManagers(twice.managers)).toEqual(writeManagers(once.managers));
  });

  it("takes away what it named before and does not name now, unless another manager has it", () => {
    const one = apply(maps, start, as("one"), map({ a: "1", b: "2", c: "3" }));
    const two = apply(maps, one, as("two"), map({ b: "2" }));
    const again = apply(maps, two, as("one"), map({ c: "3" }));
    expect(shown(again)).toEqual(map({ b: "2", c: "3" }));
    expect(fieldsOf(again)).toEqual({
      "one Apply": { "f:data": { "f:c": {} } },
      "two Apply": { "f:data": { "f:b": {} } },
    });
  });

  it("leaves fields without a manager, such as a finalizer that an admission plugin added", () => {
    const one = apply(maps, start, as("one"), map({}, { finalizers: ["e.com/a"] }));
    const guarded: State = { ...one, object: map({}, { finalizers: ["e.com/a", "kubernetes.io/guard"] }) };
    expect(shown(apply(maps, guarded, as("one"), map({})))).toMatchObject({
      metadata: { finalizers: ["kubernetes.io/guard"] },
    });
  });

  it("conflicts with who has another value there, and takes it by force", () => {
    const one = apply(maps, start, as("one"), map({ a: "1" }));
    const refused = applyConfiguration(maps, one.object, map({ a: "2" }), one.managers, as("two"), false);
    expect(conflictsOf(refused)).toEqual(["one.data.a"]);
    const forced = apply(maps, one, as("two"), map({ a: "2" }), true);
    expect(fieldsOf(forced)).toEqual({ "two Apply": { "f:data": { "f:a": {} } } });
  });

  it("shares a field with who has the same value", () => {
    const one = apply(maps, start, as("one"), map({ a: "1" }));
    expect(Object.keys(fieldsOf(apply(maps, one, as("two"), map({ a: "1" }))))).toEqual([
      "one Apply",
      "two Apply",
    ]);
  });

  it("merges items by their keys, with a protocol that is left out taken for TCP", () => {
    const ports = [{ containerPort: 80 }, { containerPort: 80, protocol: "UDP" }];
    const one = apply(pods, start, as("one"), pod({ containers: [{ name: "x", image: "a", ports }] }));
    const two = apply(
      pods,
      one,
      as("two"),
      pod({ containers: [{ name: "x", ports: [{ containerPort: 80, protocol: "TCP", name: "web" }] }] }),
    );
    expect(shown(two)).toMatchObject({
      spec: {
        containers: [
          { name: "x", image: "a", ports: [{ containerPort: 80, protocol: "TCP", name: "web" }, ports[1]] },
        ],
      },
    });
  });

  it("replaces what is atomic as a whole", () => {
    const one = apply(pods, start, as("one"), pod({ containers: [{ name: "x", args: ["a", "b"] }] }));
    expect(() => apply(pods, one, as("two"), pod({ containers: [{ name: "x", args: ["a"] }] }))).toThrow(
      'one.spec.containers[name="x"].args',
    );
  });

  it.each([
    ["1.20", ["a", "b", "c", "d"]],
    ["1.36", ["a", "d", "c", "b"]],
  ])("orders the items of a list in %s as that version does", (version, order) => {
    const view = viewOf("Pod", "", version);
    const items = (...names: string[]) => pod({ containers: names.map((name) => ({ name })) });
    const one = apply(view, start, as("one"), items("a", "b", "c"));
    const two = apply(view, one, as("two"), items("d", "c", "b"));
    const { containers } = (shown(two) as { spec: { containers: { name: string }[] } }).spec;
    expect(containers.map(({ name }) => name)).toEqual(order);
  });
});

describe("an update", () => {
  it("takes what it changes from others, and leaves the rest with them", () => {
    const one = apply(maps, start, as("one"), map({ a: "1", b: "2" }));
    const two = update(maps, one, as("two", "Update"), map({ a: "9", b: "2" }));
    expect(fieldsOf(two)).toEqual({
      "one Apply": { "f:data": { "f:b": {} } },
      "two Update": { "f:data": { "f:a": {} } },
    });
  });

  it("that changes nothing leaves the managers as they are", () => {
    const one = apply(maps, start, as("one"), map({ a: "1" }));
    expect(update(maps, one, as("two", "Update"), map({ a: "1" })).managers).toBe(one.managers);
  });

  it("gives those of whose map nothing but itself is left all that is in it", () => {
    const one = update(
      maps,
      {
        ...start,
        managers: managersAfterCreate(maps, map({ a: "1" }), as("one", "Update")),
        object: map({ a: "1" }),
      },
      as("two", "Update"),
      map({ a: "2", b: "1" }),
    );
    expect(fieldsOf(one)["one Update"]).toEqual({ "f:data": {} });
    const next = update(maps, one, as("two", "Update"), map({ a: "2", b: "1", c: "1" }));
    expect(fieldsOf(next)["one Update"]).toEqual({ "f:data": { ".": {}, "f:a": {}, "f:b": {} } });
  });

  it("by an eleventh manager puts the oldest together", () => {
    let state: State = start;
    const data: Record<string, string> = {};
    for (let i = 0; i < 12; i++) {
      data[`k${i}`] = "1";
      state = update(maps, state, as(`m${i}`, "Update", i), map({ ...data }));
    }
    const names = (writeManagers(state.managers) ?? []).map(({ manager }) => manager);
    expect(names).toHaveLength(10);
    expect(names[0]).toBe("ancient-changes");
    expect(fieldsOf(state)["ancient-changes Update"]).toEqual({
      "f:data": { ".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {} },
    });
  });
});

describe("the fields of a new object", () => {
  const values = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.constantFrom("", "1"));

  it("found by its shape are those that a comparison finds", () => {
    const containers = fc.array(
      fc.record(
        {
          name: fc.constantFrom("x", "y", ""),
          image: fc.constantFrom("", "i"),
          args: fc.array(fc.string()),
          stdin: fc.boolean(),
        },
        { requiredKeys: ["name"] },
      ),
      { maxLength: 3 },
    );
    fc.assert(
      fc.property(containers, values, values, (list, labels, nodeSelector) => {
        const object = {
          ...pod({ containers: list, nodeSelector }),
          metadata: { name: "p", labels },
        } as KubeObject;
        const cold = createdSet({ ...pods }, object);
        expect(toFieldsV1(createdSet(pods, object))).toEqual(toFieldsV1(cold));
      }),
    );
  });

  it("name structs that are there although JSON leaves them out", () => {
    const set = createdSet(pods, pod({ containers: [{ name: "x" }] }));
    expect(toFieldsV1(set)).toMatchObject({
      "f:spec": { "f:containers": { 'k:{"name":"x"}': { ".": {}, "f:name": {}, "f:resources": {} } } },
    });
  });

  it("are without what the path of the write resets", () => {
    const view = { ...pods, ignored: setOf(["f:status"]) };
    expect(
      toFieldsV1(createdSet(view, { ...pod({}), status: { phase: "Running" } } as KubeObject)),
    ).not.toHaveProperty("f:status");
  });
});

describe("entries", () => {
  it("are the same after they were read", () => {
    const { managers } = update(
      maps,
      apply(maps, start, as("one"), map({ a: "1" })),
      as("two", "Update"),
      map({ a: "1", b: "2" }),
    );
    const entries = writeManagers(managers);
    expect(writeManagers(readManagers(entries) ?? noManagers)).toEqual(entries);
  });

  it.each([
    [{ manager: "x", operation: "Create", apiVersion: "v1", fieldsType: "FieldsV1", fieldsV1: {} }],
    [{ manager: "x", operation: "Apply", fieldsType: "FieldsV1", fieldsV1: {} }],
    [{ manager: "x", operation: "Apply", apiVersion: "v1", fieldsType: "FieldsV2", fieldsV1: {} }],
    [{ manager: "x", operation: "Apply", apiVersion: "v1", fieldsType: "FieldsV1", fieldsV1: { x: {} } }],
  ])("that cannot be are none: %j", (entry) => {
    expect(readManagers([entry])).toBeUndefined();
  });
});

describe("an object with thousands of managers", () => {
  const count = 2000;
  const keys = Array.from({ length: count }, (_, i) => `k${i}`);
  const full = map(Object.fromEntries(keys.map((key) => [key, "v"])));
  const managed = (fields: (i: number) => object) =>
    readManagers(
      keys.map((_, i) => ({
        manager: `m${i}`,
        operation: "Apply",
        apiVersion: "v1",
        fieldsType: "FieldsV1",
        fieldsV1: fields(i),
      })),
    ) ?? noManagers;

  it("loses with a write the one whose only field it changes", () => {
    const managers = managed((i) => ({ "f:data": { [`f:k${i}`]: {} } }));
    const after = map({ ...(full as { data: Loose }).data, k1: "w" });
    const result = managersAfterUpdate(maps, full, after, managers, as("writer", "Update"));
    expect(result.size).toBe(count);
    expect([...result.values()].some(({ manager }) => manager === "m1")).toBe(false);
  });

  it("gives an applier's fields up only where no other has them", () => {
    const managers = managed((i) => ({ "f:data": { [`f:k${i}`]: {}, [`f:k${i === 0 ? 5 : i}`]: {} } }));
    const applied = applyConfiguration(maps, full, map({ k0: "v" }), managers, as("m0"), false);
    expect(applied.type).toBe("applied");
    const { object } = applied as Extract<Applied, { type: "applied" }>;
    expect(Object.keys((object as unknown as { data: object }).data)).toHaveLength(count);
  });

  it("has none where each of them would manage all members, and takes no apply", () => {
    const managers = managed(() => ({ "f:data": {} }));
    const after = map({ a: "b" });
    expect(managersAfterUpdate(maps, full, after, managers, as("writer", "Update")).size).toBe(0);
    expect(() => applyConfiguration(maps, full, after, managers, as("z"), true)).toThrow(
      expect.objectContaining({
        code: 500,
        message: expect.stringContaining("2000 managers have more than 200000 fields"),
      }),
    );
  });
});
