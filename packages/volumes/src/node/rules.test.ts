/** The node agent's pure rules, as tables. */
import { SimulatedHost } from "@longshore/runtime";
import { migratedPluginsAnnotation, migratedPluginsOf } from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { TransientOperationError, UncertainProgressError } from "../framework/node-error-kind.ts";
import { awsEbs } from "../plugins/aws-ebs/aws-ebs-plugin.ts";
import { fsGroupApplies } from "../plugins/csi/csi-mount-facts.ts";
import { parseVolData } from "../plugins/csi/vol-data.ts";
import { globalMountPath, volumeNameOfGlobalMount } from "../plugins/disk/global-directories.ts";
import { withDriver } from "./csi-node/decide-csi-node-step.ts";
import { installOnNode, nodeIDAnnotation, uninstallFromNode } from "./csi-node/decide-node-info-step.ts";
import { withMigratedPlugins } from "./csi-node/migrated-plugins.ts";
import { decideMigration, type MigrationFacts } from "./migration/migration-step.ts";
import { highestSupportedVersion, isLowerVersion } from "./registration/csi-versions.ts";
import { ActualState, type MountState } from "./volume-manager/actual-state.ts";
import { usedVolumes } from "./volume-manager/pods/pod-volume-spec.ts";
import { ReportedInUse } from "./volume-manager/reported-in-use.ts";

describe("migrated-plugins annotation", () => {
  it.each([
    { current: undefined, plugins: ["b", "a"], value: "a,b" },
    { current: "", plugins: [], value: "" },
    { current: "b,a", plugins: ["a", "b"], value: "b,a" },
    { current: "a,b", plugins: ["b"], value: "b" },
    { current: "a", plugins: [], value: undefined },
  ])("$current with $plugins becomes $value", ({ current, plugins, value }) => {
    const annotations = {
      other: "x",
      ...(current !== undefined && { [migratedPluginsAnnotation]: current }),
    };
    const before = { metadata: { name: "n", annotations }, spec: { drivers: [] } };
    const after = withMigratedPlugins(before, new Set(plugins));
    expect(after.metadata?.annotations?.[migratedPluginsAnnotation]).toBe(value);
    expect(after.metadata?.annotations?.other).toBe("x");
    if (value === current) expect(after).toBe(before);
    expect(migratedPluginsOf(after)).toEqual(new Set(plugins));
  });
});

describe("the migration decision", () => {
  const none = { "in-tree": [], csi: [] };
  const cases: readonly (MigrationFacts & { readonly expect: string })[] = [
    { wanted: "csi", annotated: undefined, left: none, expect: "settled csi" },
    { wanted: "csi", annotated: "in-tree", left: none, expect: "settled csi" },
    { wanted: "csi", annotated: "in-tree", left: { "in-tree": ["v"], csi: [] }, expect: "held in-tree" },
    { wanted: "csi", annotated: undefined, left: { "in-tree": ["v"], csi: [] }, expect: "held in-tree" },
    { wanted: "csi", annotated: "csi", left: { "in-tree": [], csi: ["v"] }, expect: "settled csi" },
    { wanted: "in-tree", annotated: "csi", left: { "in-tree": [], csi: ["v"] }, expect: "held csi" },
    { wanted: "in-tree", annotated: "csi", left: { "in-tree": ["v"], csi: [] }, expect: "settled in-tree" },
    { wanted: "in-tree", annotated: undefined, left: { "in-tree": [], csi: ["v"] }, expect: "held csi" },
    { wanted: "csi", annotated: undefined, left: { "in-tree": ["v"], csi: ["w"] }, expect: "held in-tree" },
    {
      wanted: "in-tree",
      annotated: undefined,
      left: { "in-tree": ["v"], csi: ["w"] },
      expect: "settled in-tree",
    },
    {
      wanted: "in-tree",
      annotated: "in-tree",
      left: { "in-tree": ["v"], csi: [] },
      expect: "settled in-tree",
    },
  ];
  it.each(cases)("wanted $wanted, annotated $annotated, left $left: $expect", (facts) => {
    const { kind, path } = decideMigration(facts);
    expect(`${kind} ${path}`).toBe(facts.expect);
  });
});

describe("driver versions", () => {
  it.each([
    { versions: ["1.0.0"], highest: "1.0.0" },
    { versions: ["v1.1.0", "1.2.0-rc1", "0.3.0"], highest: "1.2.0" },
    { versions: ["1", "2.0.0", "junk"], highest: "1.0.0" },
    { versions: [], highest: undefined },
    { versions: ["0.3.0"], highest: undefined },
    { versions: ["junk"], highest: undefined },
    { versions: ["2.0.0"], highest: undefined },
  ])("of $versions it is $highest", ({ versions, highest }) => {
    if (highest === undefined) expect(() => highestSupportedVersion("d", versions)).toThrow(/1\.x is needed/);
    else expect(highestSupportedVersion("d", versions)).toBe(highest);
  });
  it("an equal version is not lower", () => {
    expect(isLowerVersion("1.0.0", "1.0.0")).toBe(false);
    expect(isLowerVersion("1.2.0", "1.10.0")).toBe(true);
  });
});

describe("a driver on the node's objects", () => {
  const info = { nodeID: "i-1", maxVolumes: 3n, topology: { zone: "a" } };
  it("is added to the annotation beside others, with its labels", () => {
    const node = { metadata: { annotations: { [nodeIDAnnotation]: '{"other":"x"}' }, labels: { l: "v" } } };
    expect(installOnNode(node, "d", info)).toEqual({
      annotations: { [nodeIDAnnotation]: '{"other":"x","d":"i-1"}' },
      labels: { zone: "a" },
    });
  });
  it("that is there already changes nothing", () => {
    const metadata = { annotations: { [nodeIDAnnotation]: '{"d":"i-1"}' }, labels: { zone: "a" } };
    expect(installOnNode({ metadata }, "d", info)).toBeUndefined();
  });
  it.each(["{", "[]", '"x"'])("is refused when the annotation is %s", (text) => {
    const node = { metadata: { name: "n", annotations: { [nodeIDAnnotation]: text } } };
    expect(() => installOnNode(node, "d", info)).toThrow(/not a JSON object/);
  });
  it("takes the annotation along when it was the last", () => {
    const node = { metadata: { annotations: { [nodeIDAnnotation]: '{"d":"i-1"}' } } };
    expect(uninstallFromNode(node, "d")).toEqual({ annotations: { [nodeIDAnnotation]: null } });
    expect(uninstallFromNode(node, "e")).toBeUndefined();
  });
  it("keeps its CSINode entry when equal, replaces it otherwise, and clamps the count", () => {
    const empty = { metadata: { name: "n" }, spec: { drivers: [] } };
    const one = withDriver(empty, "d", info);
    expect(withDriver(one, "d", info)).toBe(one);
    const other = withDriver(one, "d", { ...info, maxVolumes: 1n << 40n, topology: {} });
    expect(other.spec.drivers).toEqual([{ name: "d", nodeID: "i-1", allocatable: { count: 2_147_483_647 } }]);
    expect(withDriver(empty, "d", { ...info, maxVolumes: 0n }).spec.drivers[0]?.allocatable).toBeUndefined();
  });
});

describe("mount states after an error", () => {
  const errors = {
    final: new Error("final"),
    uncertain: new UncertainProgressError("uncertain"),
    transient: new TransientOperationError("transient"),
    wrapped: new Error("final", { cause: new UncertainProgressError("inside") }),
  };
  const cases: readonly [keyof typeof errors, MountState, MountState][] = [
    ["final", "notMounted", "notMounted"],
    ["final", "uncertain", "notMounted"],
    ["final", "mounted", "mounted"],
    ["wrapped", "uncertain", "notMounted"],
    ["uncertain", "notMounted", "uncertain"],
    ["uncertain", "uncertain", "uncertain"],
    ["uncertain", "mounted", "mounted"],
    ["transient", "notMounted", "notMounted"],
    ["transient", "uncertain", "uncertain"],
    ["transient", "mounted", "mounted"],
  ];
  it.each(cases)("%s: %s becomes %s, for device and pod", (kind, before, after) => {
    const state = new ActualState();
    const plugin = { pluginName: "p/p" } as never;
    const spec = { readOnly: false, inlineVolumeSpecForCsiMigration: false };
    state.markAttached({ uniqueName: "v", spec, plugin, attachable: true, origin: undefined }, "");
    const pod = { podUID: "u", volumeName: "n", path: "/p", readOnly: false };
    if (before === "mounted") {
      state.markDeviceMounted("v", "/d");
      state.markPodMounted("v", pod);
    } else if (before === "uncertain") {
      state.deviceMountFailed("v", "/d", errors.uncertain);
      state.podMountFailed("v", pod, errors.uncertain);
    }
    state.deviceMountFailed("v", "/d", errors[kind]);
    state.podMountFailed("v", pod, errors[kind]);
    expect(state.get("v")?.device.state).toBe(after);
    expect(state.podOf("v", "u")?.state ?? "notMounted").toBe(after);
  });
});

describe("what is reported in use", () => {
  it("is what was posted, but never what a newer list left out", () => {
    const reported = new ReportedInUse();
    reported.posted(["before-restart"]);
    expect(reported.has("before-restart")).toBe(true);
    reported.handOut(["a", "b"]);
    expect(reported.has("before-restart")).toBe(false);
    expect(reported.has("a")).toBe(false);
    expect(reported.posted(["a", "b", "before-restart"])).toBe(true);
    expect(reported.has("a")).toBe(true);
    expect(reported.has("before-restart")).toBe(false);
    // Handed out without a: from here on it may vanish from the Node at any moment.
    reported.handOut(["b"]);
    expect(reported.has("a")).toBe(false);
    reported.handOut(["a", "b"]);
    expect(reported.has("a")).toBe(false);
    expect(reported.posted(["b"])).toBe(false);
  });
});

describe("small parts", () => {
  it.each(["vol-1", "aws://us-east-1a/vol-1", "aws:///vol-1"])(
    "the global mount of %s leads back to it",
    async (id) => {
      const path = globalMountPath("/r", awsEbs, id);
      expect(await volumeNameOfGlobalMount(new SimulatedHost(), "/r", awsEbs, path)).toBe(id);
    },
  );
  it.each(["../../etc", "a/../b", ""])("a volume id %j cannot leave the directory", (id) => {
    expect(() => globalMountPath("/r", awsEbs, id)).toThrow(/expected vol-/);
  });
  it.each(["", "{", "null", "[]", '{"volumeHandle":"v"}', '{"volumeHandle":1,"driverName":"d"}'])(
    "vol_data.json with %j is refused, by name",
    (text) => {
      expect(() => parseVolData(text, "/x/vol_data.json")).toThrow("/x/vol_data.json");
    },
  );
  it.each([
    { policy: "None", readOnly: false, fsType: "ext4", accessModes: ["ReadWriteOnce"], applies: false },
    { policy: "File", readOnly: false, fsType: "", accessModes: ["ReadWriteMany"], applies: true },
    { policy: "File", readOnly: true, fsType: "ext4", accessModes: ["ReadWriteOnce"], applies: false },
    {
      policy: "ReadWriteOnceWithFSType",
      readOnly: false,
      fsType: "ext4",
      accessModes: ["ReadWriteOnce"],
      applies: true,
    },
    {
      policy: "ReadWriteOnceWithFSType",
      readOnly: false,
      fsType: "",
      accessModes: ["ReadWriteOnce"],
      applies: false,
    },
    { policy: "ReadWriteOnceWithFSType", readOnly: false, fsType: "ext4", accessModes: [], applies: false },
  ])("fsGroup with $policy, readOnly $readOnly, fsType $fsType, $accessModes: $applies", (c) => {
    expect(fsGroupApplies(c.policy, c)).toBe(c.applies);
  });
  it("only volumes that containers use count", () => {
    const pod = {
      spec: {
        containers: [
          {
            name: "c",
            volumeMounts: [
              { name: "a", mountPath: "/a" },
              { name: "tmp", mountPath: "/t" },
            ],
          },
        ],
        initContainers: [{ name: "i", volumeDevices: [{ name: "b", devicePath: "/b" }] }],
        volumes: [
          { name: "a", persistentVolumeClaim: { claimName: "x" } },
          { name: "b", awsElasticBlockStore: { volumeID: "vol-1" } },
          { name: "unused", persistentVolumeClaim: { claimName: "y" } },
          { name: "tmp", emptyDir: {} },
        ],
      },
    };
    expect(usedVolumes(pod).map(({ name }) => name)).toEqual(["a", "b", "tmp"]);
  });
});
