/** The pure rules of the attach/detach controller, as tables. */
import { featureGates } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { createMigratedPluginManager } from "../../csimigration/migrated-plugin-manager.ts";
import { volumeGates } from "../../csimigration/volume-gates.ts";
import { ActualState, type Attachment } from "./actual-state.ts";
import { type BackendQuestion, decideBackend, needsCsiNode } from "./backend-decision.ts";
import { type DesiredPodVolume, DesiredState, type UndecidedVolume } from "./desired-state.ts";
import { isWanted, nodeUses, unknownItCouldBe, type VolumeOwners } from "./detach-guards.ts";
import { multiAttachMessage } from "./multi-attach-message.ts";
import { identityOfName, inTreePluginOfIdentity } from "./volume-identity.ts";

const plugin = "kubernetes.io/aws-ebs";
const driver = "ebs.csi.aws.com";

describe("the agreement of controller and kubelet", () => {
  const node = (migrated: string | undefined, drivers: string[] = [driver]) => ({
    metadata: {
      name: "n",
      ...(migrated === undefined
        ? {}
        : { annotations: { "storage.alpha.kubernetes.io/migrated-plugins": migrated } }),
    },
    spec: { drivers: drivers.map((name) => ({ name, nodeID: "i" })) },
  });
  type Case = readonly [string, Partial<BackendQuestion>, string, string?];
  const cases: readonly Case[] = [
    ["missing CSINode", { csiNode: undefined }, "in-tree", "error"],
    ["missing CSINode, gates off", { csiNode: undefined, gates: "off" }, "in-tree"],
    ["missing CSINode, driver at work", { csiNode: undefined, driverHasAttachments: true }, "error"],
    ["no annotation", { csiNode: node(undefined) }, "in-tree"],
    ["empty annotation", { csiNode: node("") }, "in-tree"],
    ["another plugin", { csiNode: node("kubernetes.io/gce-pd") }, "in-tree"],
    ["this plugin", { csiNode: node(plugin) }, "csi"],
    ["among others", { csiNode: node(`kubernetes.io/gce-pd,${plugin}`) }, "csi"],
    ["not trimmed", { csiNode: node(`kubernetes.io/gce-pd, ${plugin}`) }, "in-tree"],
    ["without the driver", { csiNode: node(plugin, []) }, "error"],
    ["gates off", { csiNode: node(plugin), gates: "off" }, "error", "in-tree"],
    ["complete", { csiNode: undefined, gates: "complete" }, "csi"],
  ];
  it.each(cases.map(([name, fields, kind, compat = kind]) => ({ name, fields, kind, compatKind: compat })))(
    "$name",
    ({ fields, kind, compatKind }) => {
      const question: BackendQuestion = {
        inTreePlugin: plugin,
        driver,
        nodeName: "n",
        gates: "on",
        csiNode: undefined,
        driverHasAttachments: false,
        compat: false,
        ...fields,
      };
      expect(decideBackend(question).kind).toBe(kind);
      expect(decideBackend({ ...question, compat: true }).kind).toBe(compatKind);
    },
  );
  it("asks the node unless that cannot matter", () => {
    expect([needsCsiNode("on", false), needsCsiNode("off", false), needsCsiNode("complete", false)]).toEqual([
      true,
      true,
      false,
    ]);
    expect([needsCsiNode("on", true), needsCsiNode("off", true)]).toEqual([true, false]);
  });
});

describe("identity", () => {
  const migration = createMigratedPluginManager(featureGates(volumeGates));
  const csi = `kubernetes.io/csi/${driver}^vol-1`;
  it.each([
    [`${plugin}/vol-1`, csi],
    [`${plugin}/aws://us-east-1a/vol-1`, csi],
    [csi, csi],
    [`${plugin}/aws://us-east-1a/other`, `${plugin}/aws://us-east-1a/other`],
    ["example.com/flex/x", "example.com/flex/x"],
    ["broken", "broken"],
  ])("%s", (name, identity) => {
    expect(identityOfName(migration, name)).toBe(identity);
  });
  it("leads back to the plugin", () => {
    expect(inTreePluginOfIdentity(csi)).toBe(plugin);
    expect(inTreePluginOfIdentity(`${plugin}/x`)).toBe(plugin);
    expect(inTreePluginOfIdentity("kubernetes.io/csi/other.example^vol-1")).toBeUndefined();
  });
  describe("use by the node", () => {
    const inTree = `${plugin}/aws://us-east-1a/vol-1`;
    const uses = (inUse: string, attachedAs: string, listed: string[] = [], known: string[] = []) =>
      nodeUses(
        {
          status: {
            volumesInUse: [inUse],
            volumesAttached: listed.map((name) => ({ name, devicePath: "" })),
          },
        },
        {
          identity: csi,
          uniqueName: attachedAs,
          pluginName: attachedAs === csi ? "kubernetes.io/csi" : plugin,
        },
        {
          identityOfName: (name) => identityOfName(migration, name),
          isAttachedAs: (name) => known.includes(name),
        },
      );
    it("protects the attachment of that form, by whichever of its names", () => {
      expect(uses(inTree, inTree)).toBe(true);
      expect(uses(`${plugin}/vol-1`, inTree)).toBe(true);
      expect(uses(csi, csi)).toBe(true);
      expect(uses(`${plugin}/vol-2`, inTree)).toBe(false);
    });
    it("protects the other form too, where it can be mounted: listed as attached, or known to be", () => {
      expect(uses(inTree, csi, [inTree])).toBe(true);
      expect(uses(csi, inTree, [], [csi])).toBe(true);
    });
    it("does not protect a form that the node only leaves behind while it waits for the other", () => {
      expect(uses(csi, inTree)).toBe(false);
      expect(uses(inTree, csi)).toBe(false);
    });
  });
});

describe("unknown volumes", () => {
  const attachment = { nodeName: "n", uniqueName: "x/y/1", identity: "id-1" } as Attachment;
  const unknown = (fields: Partial<UndecidedVolume>): UndecidedVolume => ({
    kind: "undecided",
    podVolumeName: "v",
    reason: "",
    identity: undefined,
    claim: undefined,
    pvName: undefined,
    inTreePlugin: undefined,
    ...fields,
  });
  const owned: VolumeOwners = {
    pvNames: ["pv-1"],
    claims: [{ namespace: "a", name: "c" }],
    inTreePlugin: plugin,
  };
  const noOwners: VolumeOwners = { pvNames: [], claims: [], inTreePlugin: plugin };
  it.each([
    ["the same disk, undecided", unknown({ identity: "id-1" }), owned, true],
    ["another disk, undecided", unknown({ identity: "id-2" }), owned, false],
    ["not translatable, same plugin", unknown({ inTreePlugin: plugin }), owned, true],
    ["not translatable, another plugin", unknown({ inTreePlugin: "kubernetes.io/gce-pd" }), owned, false],
    [
      "a claim that was never bound",
      unknown({ pvName: "", claim: { namespace: "a", name: "c" } }),
      noOwners,
      false,
    ],
    ["its PV is missing", unknown({ pvName: "pv-9" }), noOwners, true],
    ["its PV is missing, and the disk is another PV's", unknown({ pvName: "pv-9" }), owned, false],
    [
      "its claim is missing, the disk of no volume",
      unknown({ claim: { namespace: "a", name: "c" } }),
      noOwners,
      true,
    ],
    [
      "its claim is missing, the disk that claim's",
      unknown({ claim: { namespace: "a", name: "c" } }),
      owned,
      true,
    ],
    [
      "its claim is missing, the disk another claim's",
      unknown({ claim: { namespace: "a", name: "d" } }),
      owned,
      false,
    ],
    [
      "its claim is missing, the disk of an unclaimed PV",
      unknown({ claim: { namespace: "a", name: "d" } }),
      { ...owned, claims: [] },
      true,
    ],
  ])("%s", (_name, volume, owners, kept) => {
    expect(unknownItCouldBe(attachment, [volume], owners) !== undefined).toBe(kept);
  });
});

describe("states", () => {
  const pod = (name: string) => ({ metadata: { name, uid: name, resourceVersion: "1" } }) as never;
  const wanted = (uniqueName: string): DesiredPodVolume => ({
    kind: "wanted",
    podVolumeName: "v",
    uniqueName,
    identity: uniqueName,
    pluginName: "x/y",
    spec: {} as never,
    inTreePlugin: undefined,
    inTreeName: undefined,
    decidedIn: undefined,
  });
  it("keeps a volume as long as any pod wants it, and the Multi-Attach mark with it", () => {
    const desired = new DesiredState();
    desired.setPod("p", { pod: pod("p"), nodeName: "n", volumes: [wanted("x/y/1")] });
    desired.setPod("q", { pod: pod("q"), nodeName: "n", volumes: [wanted("x/y/1")] });
    const volume = desired.get("n", "x/y/1");
    if (volume !== undefined) volume.multiAttachErrorReported = true;
    desired.setPod("q", { pod: pod("q"), nodeName: "n", volumes: [wanted("x/y/1")] });
    expect(desired.get("n", "x/y/1")?.multiAttachErrorReported).toBe(true);
    desired.setPod("p", undefined);
    expect([...(desired.get("n", "x/y/1")?.pods.keys() ?? [])]).toEqual(["q"]);
    desired.setPod("q", undefined);
    expect([...desired.volumes()]).toEqual([]);
    expect(desired.podsOn("n")).toEqual([]);
  });

  it("never makes a confirmed attachment uncertain, and reports confirmed ones only", () => {
    const actual = new ActualState();
    const entry = {
      nodeName: "n",
      uniqueName: "x/y/1",
      identity: "x/y/1",
      pluginName: "x/y",
      volumeName: "1",
      spec: undefined,
      devicePath: "",
    };
    const attachment = actual.put({ ...entry, confirmed: false });
    expect(actual.report("n")).toMatchObject({ listed: [], record: "x/y/1" });
    expect(actual.isDirty("n")).toBe(true);
    actual.put({ ...entry, devicePath: "/dev/x", confirmed: true });
    actual.put({ ...entry, confirmed: false });
    expect(actual.report("n").listed).toEqual([{ name: "x/y/1", devicePath: "/dev/x" }]);
    expect(actual.isDirty("n")).toBe(true);
    actual.written("n", actual.report("n").version);
    expect(actual.isDirty("n")).toBe(false);
    actual.setReported(attachment, false);
    expect([actual.report("n").listed, actual.isDirty("n")]).toEqual([[], true]);
    expect(isWanted(attachment, new DesiredState())).toBe(false);
  });
});

describe("the Multi-Attach text", () => {
  const spec = {
    persistentVolume: { metadata: { name: "pv" } },
    readOnly: false,
    inlineVolumeSpecForCsiMigration: false,
  };
  const pod = (namespace: string, name: string) => ({ metadata: { namespace, name } });
  it.each([
    [[], "Volume is already exclusively attached to one node and can't be attached to another"],
    [[pod("a", "p")], "Volume is already used by pod(s) p"],
    [
      [pod("a", "p"), pod("b", "secret-name")],
      "Volume is already used by pod(s) p and 1 pod(s) in different namespaces",
    ],
    [[pod("b", "x"), pod("c", "y")], "Volume is already used by 2 pod(s) in different namespaces"],
  ])("%#", (others, text) => {
    expect(multiAttachMessage(spec, pod("a", "me"), others)).toBe(
      `Multi-Attach error for volume "pv" ${text}`,
    );
  });
});
