/** The life of definitions and of the objects that they make possible. */
import { type KubeApiError, type KubeObject, type Resource, resources } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import type { CustomSchema } from "../api/custom-schema.ts";
import { createApiServer } from "../api-server.ts";
import type { Definition, DefinitionVersion } from "../custom/definition.ts";
import { aServer } from "../testing/world.ts";

const signal = new AbortController().signal;

const definitions: Resource<Definition> = {
  group: "apiextensions.k8s.io",
  versions: ["v1"],
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
};

interface Widget extends KubeObject {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
}

const widgets: Resource<Widget> = {
  group: "example.com",
  versions: ["v1"],
  kind: "Widget",
  plural: "widgets",
  namespaced: true,
};

const open: CustomSchema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

function aDefinition(
  version: Partial<DefinitionVersion> = {},
  more: Partial<Definition["spec"]> = {},
): Definition {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "widgets.example.com" },
    spec: {
      group: "example.com",
      scope: "Namespaced",
      names: { plural: "widgets", kind: "Widget" },
      versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: open }, ...version }],
      ...more,
    },
  };
}

const specSchema = (spec: CustomSchema): Partial<DefinitionVersion> => ({
  schema: { openAPIV3Schema: { type: "object", properties: { spec } } },
});

async function withDefinition(definition = aDefinition()) {
  const world = aServer();
  await world.kube.create(definitions, definition, { signal });
  await settled();
  return world;
}

/** Definitions are looked after in microtasks. */
const settled = async () => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

const aWidget = (spec: Widget["spec"] = {}, name = "one"): Widget => ({
  metadata: { name, namespace: "default" },
  spec,
});

async function refusal(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
  } catch (error) {
    return (error as KubeApiError).message;
  }
  return "";
}

const at = { name: "one", namespace: "default" };

describe("a definition", () => {
  it("is established, and its kind is served", async () => {
    const { kube } = await withDefinition();
    const stored = await kube.get(definitions, { name: "widgets.example.com" }, { signal });
    expect(stored?.status).toMatchObject({
      conditions: [
        { type: "NamesAccepted", status: "True", reason: "NoConflicts" },
        { type: "Established", status: "True", reason: "InitialNamesAccepted" },
      ],
      acceptedNames: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" },
      storedVersions: ["v1"],
    });
    await kube.create(widgets, aWidget({ size: 1 }), { signal });
    expect((await kube.list(widgets, { signal })).items).toHaveLength(1);
  });

  it("that goes takes its objects along, and waits for those that are held", async () => {
    const { kube, server } = await withDefinition();
    await kube.create(widgets, aWidget(), { signal });
    const held = aWidget({}, "held");
    const finalizers = ["example.com/hold"];
    await kube.create(widgets, { ...held, metadata: { ...held.metadata, finalizers } }, { signal });
    await kube.delete(definitions, { name: "widgets.example.com" }, { signal });
    await settled();
    expect((await kube.list(widgets, { signal })).items.map((w) => w.metadata.name)).toEqual(["held"]);
    expect(await refusal(kube.create(widgets, aWidget({}, "late"), { signal }))).toBe(
      "create not allowed while custom resource definition is terminating",
    );
    await kube.patch(
      widgets,
      { name: "held", namespace: "default" },
      { type: "merge", body: { metadata: { finalizers: null } } },
      { signal },
    );
    await settled();
    expect(await kube.get(definitions, { name: "widgets.example.com" }, { signal })).toBeUndefined();
    expect(server.registry.context.kinds.find("example.com", "widgets")).toBeUndefined();
  });

  it("is served again after a restart, before the first request", async () => {
    const { store, env } = await withDefinition(
      aDefinition(specSchema({ type: "object", properties: { a: { type: "string", default: "x" } } })),
    );
    const again = createApiServer(env, { store, controllers: false });
    const made = await again.client().create(widgets, aWidget(), { signal });
    expect(made.spec).toEqual({ a: "x" });
  });

  it("with names that are taken is not served", async () => {
    const { kube, server } = await withDefinition();
    const second = aDefinition({}, { names: { plural: "gadgets", kind: "Widget", shortNames: ["widget"] } });
    await kube.create(definitions, { ...second, metadata: { name: "gadgets.example.com" } }, { signal });
    await settled();
    const stored = await kube.get(definitions, { name: "gadgets.example.com" }, { signal });
    expect(stored?.status?.conditions).toMatchObject([
      { type: "NamesAccepted", status: "False" },
      { type: "Established", status: "False", reason: "NotAccepted" },
    ]);
    expect(server.registry.context.kinds.find("example.com", "gadgets")).toBeUndefined();
    await kube.delete(definitions, { name: "widgets.example.com" }, { signal });
    await settled();
    expect(server.registry.context.kinds.find("example.com", "gadgets")).toBeDefined();
  });

  const wrong: readonly (readonly [string, Definition, string])[] = [
    [
      "a name that is not its own",
      { ...aDefinition(), metadata: { name: "x.example.com" } },
      'metadata.name: Invalid value: "x.example.com": must be spec.names.plural+"."+spec.group',
    ],
    [
      "no schema",
      aDefinition({ schema: {} }),
      "spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required",
    ],
    [
      "a scope that there is not",
      aDefinition({}, { scope: "All" as "Cluster" }),
      'spec.scope: Unsupported value: "All": supported values: "Cluster", "Namespaced"',
    ],
    [
      "no version of storage",
      aDefinition({ storage: false }),
      "must have exactly one version marked as storage version",
    ],
    [
      "a webhook",
      aDefinition({}, { conversion: { strategy: "Webhook" } }),
      'spec.conversion.strategy: Unsupported value: "Webhook": supported values: "None"',
    ],
    [
      "a column without a path",
      aDefinition({ additionalPrinterColumns: [{ name: "A", type: "string", jsonPath: "" }] }),
      "spec.additionalPrinterColumns[0].JSONPath: Required value",
    ],
    [
      "a scale outside of the spec",
      aDefinition({ subresources: { scale: { specReplicasPath: ".x", statusReplicasPath: ".status.r" } } }),
      'specReplicasPath: Invalid value: ".x": should be a json path under .spec',
    ],
    [
      "a rule that is none",
      aDefinition(specSchema({ type: "object", "x-kubernetes-validations": [{ rule: "self.a ==" }] })),
      "x-kubernetes-validations[0].rule: Invalid value",
    ],
    [
      "a rule that is no question",
      aDefinition(specSchema({ type: "object", "x-kubernetes-validations": [{ rule: "1 + 1" }] })),
      "cel expression must evaluate to a bool",
    ],
  ];
  it.each(wrong)("with %s is refused", async (_name, definition, why) => {
    expect(await refusal(aServer().kube.create(definitions, definition, { signal }))).toContain(why);
  });
});

describe("versions", () => {
  const both = aDefinition(
    {},
    {
      versions: [
        {
          name: "v1",
          served: true,
          storage: false,
          ...specSchema({
            type: "object",
            properties: { a: { type: "string" }, b: { type: "string", default: "B" } },
          }),
        },
        {
          name: "v1alpha1",
          served: true,
          storage: true,
          ...specSchema({ type: "object", properties: { a: { type: "string" }, old: { type: "string" } } }),
          deprecated: true,
        },
        { name: "v0", served: false, storage: false, schema: { openAPIV3Schema: open } },
      ],
    },
  );
  const inOld: Resource<Widget> = { ...widgets, versions: ["v1alpha1"] };

  it("show one object in the shape of each", async () => {
    const { kube, store, server } = await withDefinition(both);
    await kube.create(inOld, aWidget({ a: "1", old: "o" }), { signal });
    expect(store.table("widgets.example.com").get("default", "one")).toMatchObject({
      apiVersion: "example.com/v1alpha1",
    });
    expect(await kube.get(inOld, at, { signal })).toMatchObject({
      apiVersion: "example.com/v1alpha1",
      spec: { a: "1", old: "o" },
    });
    expect(await kube.get(widgets, at, { signal })).toMatchObject({
      apiVersion: "example.com/v1",
      spec: { a: "1", b: "B" },
    });
    const kind = server.registry.context.kinds.find("example.com", "widgets");
    expect(kind?.versions).toEqual(["v1", "v1alpha1"]);
    expect(kind?.custom?.deprecation("v1alpha1")).toBe("example.com/v1alpha1 Widget is deprecated");
  });

  it("that stored objects cannot be taken away", async () => {
    const { kube } = await withDefinition(both);
    const stored = await kube.get(definitions, { name: "widgets.example.com" }, { signal });
    if (stored === undefined) throw new Error("it is not there");
    const versions = stored.spec.versions
      .filter((v) => v.name !== "v1alpha1")
      .map((v) => ({ ...v, storage: v.name === "v1" }));
    expect(
      await refusal(kube.update(definitions, { ...stored, spec: { ...stored.spec, versions } }, { signal })),
    ).toContain('status.storedVersions[0]: Invalid value: "v1alpha1": must appear in spec.versions');
  });
});

describe("a changed schema", () => {
  it("shows in what was stored before", async () => {
    const { kube } = await withDefinition(
      aDefinition(specSchema({ type: "object", properties: { a: { type: "string" } } })),
    );
    await kube.create(widgets, aWidget({ a: "1" }), { signal });
    const next = specSchema({ type: "object", properties: { b: { type: "integer", default: 7 } } });
    const body = { spec: { versions: [{ name: "v1", served: true, storage: true, ...next }] } };
    await kube.patch(definitions, { name: "widgets.example.com" }, { type: "merge", body }, { signal });
    await settled();
    expect((await kube.get(widgets, at, { signal }))?.spec).toEqual({ b: 7 });
  });
});

describe("sub-resources", () => {
  it("scale what the paths say", async () => {
    const { server, kube } = await withDefinition(
      aDefinition({
        schema: { openAPIV3Schema: open },
        subresources: {
          status: {},
          scale: {
            specReplicasPath: ".spec.size.count",
            statusReplicasPath: ".status.now",
            labelSelectorPath: ".status.selector",
          },
        },
      }),
    );
    await kube.create(widgets, aWidget({ size: { count: 2 } }), { signal });
    await kube.patch(
      widgets,
      at,
      { type: "merge", body: { status: { now: 1, selector: "a=b" } } },
      { signal, subresource: "status" },
    );
    const ask = {
      group: "example.com",
      version: "v1",
      resource: "widgets",
      subresource: "scale",
      ...at,
      query: {},
      user: { name: "t", groups: [] },
    };
    expect(server.registry.handle({ ...ask, verb: "get" })).toMatchObject({
      object: { kind: "Scale", spec: { replicas: 2 }, status: { replicas: 1, selector: "a=b" } },
    });
    server.registry.handle({ ...ask, verb: "patch", patchType: "merge", body: { spec: { replicas: 5 } } });
    expect(await kube.get(widgets, at, { signal })).toMatchObject({
      spec: { size: { count: 5 } },
      metadata: { generation: 2 },
    });
  });

  it("select by the fields that the definition names", async () => {
    const { kube } = await withDefinition(aDefinition({ selectableFields: [{ jsonPath: ".spec.colour" }] }));
    await kube.create(widgets, aWidget({ colour: "red" }), { signal });
    await kube.create(widgets, aWidget({ colour: "blue" }, "two"), { signal });
    const { items } = await kube.list(widgets, { signal, fieldSelector: "spec.colour=blue" });
    expect(items.map((w) => w.metadata.name)).toEqual(["two"]);
  });
});

describe("rules", () => {
  const spec: CustomSchema = {
    type: "object",
    properties: {
      min: { type: "integer" },
      max: { type: "integer" },
      fixed: {
        type: "string",
        "x-kubernetes-validations": [{ rule: "self == oldSelf", message: "it is fixed" }],
      },
      once: {
        type: "string",
        "x-kubernetes-validations": [
          {
            rule: "oldSelf.hasValue() || self == 'first'",
            optionalOldSelf: true,
            message: "it begins as first",
          },
        ],
      },
      "dashed-name": { type: "string" },
      list: { type: "array", items: { type: "integer" } },
      parts: {
        type: "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        items: {
          type: "object",
          required: ["name"],
          properties: {
            name: { type: "string" },
            size: {
              type: "integer",
              "x-kubernetes-validations": [{ rule: "self >= oldSelf", message: "it only grows" }],
            },
          },
        },
      },
    },
    "x-kubernetes-validations": [
      {
        rule: "!has(self.min) || !has(self.max) || self.min <= self.max",
        messageExpression: "'min ' + string(self.min) + ' is above max ' + string(self.max)",
        fieldPath: ".min",
        reason: "FieldValueForbidden",
      },
      {
        rule: "!has(self.__dash__x) && (!has(self.dashed__dash__name) || self.dashed__dash__name.matches('^[a-z]+$'))",
      },
      {
        rule: "!has(self.list) || self.list.all(a, self.list.all(b, self.list.all(c, a + b + c >= 0)))",
        message: "sums are positive",
      },
    ],
  };
  const rule = () => withDefinition(aDefinition(specSchema(spec)));
  const change = (kube: Awaited<ReturnType<typeof rule>>["kube"], body: object) =>
    refusal(kube.patch(widgets, at, { type: "merge", body: { spec: body } }, { signal }));

  it("hold for what is made", async () => {
    const { kube } = await rule();
    const make = (given: Widget["spec"]) => refusal(kube.create(widgets, aWidget(given), { signal }));
    expect(await make({ min: 3, max: 2 })).toBe(
      'Widget.example.com "one" is invalid: spec.min: Forbidden: min 3 is above max 2',
    );
    expect(await make({ "dashed-name": "A" })).toContain('spec: Invalid value: "object": failed rule: ');
    expect(await make({ once: "second" })).toContain(
      'spec.once: Invalid value: "string": it begins as first',
    );
    expect(await make({ min: 1, max: 2, "dashed-name": "a", once: "first", list: [1, 2] })).toBe("");
  });

  it("hold for changes", async () => {
    const { kube } = await rule();
    await kube.create(widgets, aWidget({ fixed: "a", once: "first", parts: [{ name: "p", size: 2 }] }), {
      signal,
    });
    expect(await change(kube, { fixed: "b" })).toContain('spec.fixed: Invalid value: "string": it is fixed');
    expect(await change(kube, { once: "second" })).toBe("");
    expect(
      await change(kube, {
        parts: [
          { name: "new", size: 1 },
          { name: "p", size: 1 },
        ],
      }),
    ).toContain('spec.parts[1].size: Invalid value: "integer": it only grows');
    expect(
      await change(kube, {
        parts: [
          { name: "new", size: 1 },
          { name: "p", size: 3 },
        ],
      }),
    ).toBe("");
  });

  it("cannot take long", async () => {
    const { kube } = await rule();
    const list = Array.from({ length: 2000 }, (_, i) => i);
    expect(await refusal(kube.create(widgets, aWidget({ list }), { signal }))).toContain(
      "actual cost limit exceeded",
    );
  });

  it("let be what was wrong before and is not touched", async () => {
    const { kube, store } = await rule();
    const made = await kube.create(widgets, aWidget({ min: 1, max: 2 }), { signal });
    const wrong = { ...made, spec: { ...made.spec, list: ["text"] } };
    store.commit([
      { resource: "widgets.example.com", namespace: "default", name: "one", object: wrong as KubeObject },
    ]);
    expect(await change(kube, { max: 3 })).not.toContain("spec.list");
    expect(await change(kube, { list: [true] })).toContain("spec.list[0]: Invalid value");
  });
});

describe("lists", () => {
  it("have the items of sets and maps once", async () => {
    const { kube } = await withDefinition(
      aDefinition(
        specSchema({
          type: "object",
          properties: {
            set: { type: "array", "x-kubernetes-list-type": "set", items: { type: "string" } },
            map: {
              type: "array",
              "x-kubernetes-list-type": "map",
              "x-kubernetes-list-map-keys": ["k"],
              items: { type: "object", required: ["k"], properties: { k: { type: "string" } } },
            },
          },
        }),
      ),
    );
    expect(
      await refusal(
        kube.create(widgets, aWidget({ set: ["a", "b", "a"], map: [{ k: "x" }, { k: "x" }] }), { signal }),
      ),
    ).toBe(
      'Widget.example.com "one" is invalid: [spec.set[2]: Duplicate value: "a", spec.map[1]: Duplicate value: {"k":"x"}]',
    );
  });
});

it("a namespace that goes takes custom resources along", async () => {
  const { clock, env, store, kube } = await withDefinition();
  await kube.create(resources.namespaces, { metadata: { name: "away" } }, { signal });
  await kube.create(widgets, { ...aWidget(), metadata: { name: "one", namespace: "away" } }, { signal });
  const server = createApiServer(env, { store });
  await server.start();
  await kube.delete(resources.namespaces, { name: "away" }, { signal });
  await clock.advance(1000);
  expect((await kube.list(widgets, { signal })).items).toEqual([]);
  await server.stop();
});
