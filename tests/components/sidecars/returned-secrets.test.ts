/**
 * A driver returns every secret that it receives, in statuses and in every field of its answers: none of them appears
 * in a log, an event, an object or a metric. The RPCs and fields come from the protocol's descriptors, so new ones are
 * included.
 */
import {
  ControllerServiceCapability_RPC_Type,
  type CsiServices,
  GetVolumeGroupSnapshotResponseSchema,
} from "@longshore/csi";
import { interceptWrites, type KubeClient, type KubeObject, type Resource, resources } from "@longshore/kube";
import { createMeter, type RecordedLine, recordingLogger } from "@longshore/runtime";
import { startSidecars } from "@longshore/sidecars";
import { startSnapshotController } from "@longshore/sidecars/snapshot-controller";
import { secretKinds, snapshotResources } from "@longshore/storage";
import { type LeakyServices, leakyServices, methodsWithSecrets, placesOfText } from "@longshore/testing/csi";
import { expect, test } from "vitest";
import { type CrashWorld, crashWorld } from "./crash-world.ts";

const namespace = "default";
const password = `correct horse/battery+"staple"`;
const labels = { app: "db" };
const groupSnapshots = true;

/** RPCs with secrets that no sidecar makes, each with its caller. */
const madeElsewhere: Readonly<Record<string, string>> = {
  ValidateVolumeCapabilities: "driver check",
  GetMetadataAllocated: "programs for backups",
  GetMetadataDelta: "programs for backups",
  NodeStageVolume: "the node agent",
  NodePublishVolume: "the node agent",
  NodeExpandVolume: "the node agent",
};

/** RPCs whose answers have no room for a text. */
const silent = new Set(
  methodsWithSecrets.filter(({ output }) => placesOfText(output, "").length === 0).map(({ name }) => name),
);

test.each([
  ["ListSnapshots", "GetSnapshot"],
  ["GetSnapshot", "ListSnapshots"],
])("no secret that a driver returns is anywhere; snapshots are looked at with %s", async (_, unused) => {
  const logger = recordingLogger();
  const meter = createMeter();
  let driver: LeakyServices | undefined;
  const world = await crashWorld({
    watch: { logger, meter },
    extend: (services) => {
      driver = leakyServices(unused === "ListSnapshots" ? withoutLists(services) : services);
      return driver.services;
    },
  });
  const written = new Set<string>();
  const env = { ...world.env(), kube: watched(world.kube, written) };
  const sidecars = startSidecars(env, {
    sidecars: {
      provisioner: {},
      attacher: {},
      resizer: { volumeAttributesClass: true },
      snapshotter: { groupSnapshots },
      "health-monitor": {},
    },
  });
  const controller = startSnapshotController(env, { groupSnapshots });
  await addClasses(world);
  const looksAtGroup = () => driver?.leaks.get("GetVolumeGroupSnapshot")?.length ?? 0;
  const stuck = await wholeLife(world, looksAtGroup).catch((error: unknown) => error);
  await sidecars.stop();
  await controller.stop();

  expectNone("a log", logger.lines.map(textOf));
  expectNone("a metric", [await meter.exposition()]);
  expectNone("an object", [...written]);
  expect(logger.lines.map(textOf).join("\n")).toContain("***stripped***");
  expect(stuck).toBeUndefined();

  const leaked = driver?.leaks ?? new Map();
  const called = methodsWithSecrets
    .map(({ name }) => name)
    .filter((name) => !(name in madeElsewhere) && name !== unused);
  for (const name of called) {
    const expected = silent.has(name) ? ["INTERNAL"] : ["INTERNAL", "UNAVAILABLE", "INVALID_ARGUMENT"];
    expect(leaked.get(name) ?? [], `${name} gave nothing back: it says nothing`).toEqual(
      expect.arrayContaining(expected),
    );
  }
  for (const { name, output } of methodsWithSecrets.filter((method) => called.includes(method.name))) {
    const places = placesOfText(output, "").map(({ path }) => path);
    expect(leaked.get(name), `places of ${name}`).toEqual(expect.arrayContaining(places));
  }
  // Calls without secrets of their own return those of earlier calls.
  for (const name of ["ControllerGetVolume", "ListVolumes"].filter((each) => leaked.has(each)))
    expect(leaked.get(name)?.some((where: string) => where.endsWith("message"))).toBe(true);
});

/** The driver has no list of its snapshots. */
function withoutLists(services: CsiServices): CsiServices {
  const { controller } = services;
  return {
    ...services,
    controller: {
      ...controller,
      async controllerGetCapabilities(request, signal) {
        const answer = await controller?.controllerGetCapabilities?.(request, signal);
        const lists = ControllerServiceCapability_RPC_Type.LIST_SNAPSHOTS;
        return {
          capabilities: (answer?.capabilities ?? []).filter(
            ({ type }) => type?.case !== "rpc" || type.value?.type !== lists,
          ),
        };
      },
    },
  };
}

/** The client, with every object that is written through it noted as it is afterwards. */
function watched(kube: KubeClient, written: Set<string>): KubeClient {
  return interceptWrites(kube, async (_, signal, send) => {
    const object = await send(signal);
    written.add(JSON.stringify(object) ?? "");
    return object;
  });
}

async function addClasses({ kube, signal, driverName }: CrashWorld): Promise<void> {
  const data = {
    password: Buffer.from(password).toString("base64"),
    user: Buffer.from("operator-of-disks").toString("base64"),
  };
  await kube.create(resources.secrets, { metadata: { namespace, name: "login" }, data }, { signal });
  const reference = (kind: string) => {
    const kebab = kind.replace(/(?<=.)([A-Z])/g, "-$1").toLowerCase();
    const prefix = `csi.storage.k8s.io/${kebab}-secret`;
    return [
      [`${prefix}-name`, "login"],
      [`${prefix}-namespace`, namespace],
    ];
  };
  const parameters = Object.fromEntries(secretKinds.flatMap(reference));
  const ofSnapshots = (kinds: readonly string[]) => Object.fromEntries(kinds.flatMap(reference));
  await kube.create(
    resources.storageClasses,
    {
      metadata: { name: "fast" },
      provisioner: driverName,
      allowVolumeExpansion: true,
      reclaimPolicy: "Delete",
      volumeBindingMode: "Immediate",
      parameters,
    },
    { signal },
  );
  await kube.create(
    resources.volumeAttributesClasses,
    { metadata: { name: "better" }, driverName, parameters: { type: "gp3" } },
    { signal },
  );
  await kube.create(
    snapshotResources.volumeSnapshotClasses,
    {
      metadata: { name: "snapshots" },
      driver: driverName,
      deletionPolicy: "Delete",
      parameters: ofSnapshots(["snapshotter", "snapshotter-list"]),
    },
    { signal },
  );
  await kube.create(
    snapshotResources.volumeGroupSnapshotClasses,
    {
      metadata: { name: "groups" },
      driver: driverName,
      deletionPolicy: "Delete",
      parameters: ofSnapshots(["group-snapshotter", "group-snapshotter-get"]),
    },
    { signal },
  );
}

/** A volume is made, attached, expanded, modified, snapshotted alone and in a group, and all of it is deleted. */
async function wholeLife(world: CrashWorld, looksAtGroup: () => number): Promise<void> {
  const { kube, signal, driverName } = world;
  const claims = resources.persistentVolumeClaims;
  const ref = { namespace, name: "data" };
  const annotations = { "volume.beta.kubernetes.io/storage-provisioner": driverName };
  const spec = {
    accessModes: ["ReadWriteOnce"],
    resources: { requests: { storage: "1Gi" } },
    storageClassName: "fast",
  };
  const claim = await kube.create(claims, { metadata: { ...ref, annotations, labels }, spec }, { signal });
  const pv = await world.eventually("a volume", async () => {
    const { items } = await kube.list(resources.persistentVolumes, { signal });
    return items.find(({ spec }) => spec?.claimRef?.uid === claim.metadata.uid);
  });
  const pvName = pv.metadata.name;
  await kube.patch(claims, ref, { type: "merge", body: { spec: { volumeName: pvName } } }, { signal });
  const bound = { phase: "Bound", accessModes: ["ReadWriteOnce"], capacity: { storage: "1Gi" } };
  await kube.patch(
    claims,
    ref,
    { type: "merge", body: { status: bound } },
    { signal, subresource: "status" },
  );
  const isBound = { type: "merge" as const, body: { status: { phase: "Bound" } } };
  const ofStatus = { signal, subresource: "status" } as const;
  await kube.patch(resources.persistentVolumes, { name: pvName }, isBound, ofStatus);

  await kube.create(
    resources.volumeAttachments,
    {
      metadata: { name: "va" },
      spec: { attacher: driverName, nodeName: "node-a", source: { persistentVolumeName: pvName } },
    },
    { signal },
  );
  await world.eventually("attached", async () => {
    const va = await kube.get(resources.volumeAttachments, { name: "va" }, { signal });
    return va?.status?.attached === true;
  });
  const larger = { spec: { resources: { requests: { storage: "2Gi" } } } };
  await kube.patch(claims, ref, { type: "merge", body: larger }, { signal });
  await world.eventually("expanded", async () => {
    const now = await kube.get(resources.persistentVolumes, { name: pvName }, { signal });
    return now?.spec?.capacity?.storage === "2Gi";
  });
  const better = { spec: { volumeAttributesClassName: "better" } };
  await kube.patch(claims, ref, { type: "merge", body: better }, { signal });
  await world.eventually("modified", async () => {
    const now = await kube.get(claims, ref, { signal });
    return now?.status?.currentVolumeAttributesClassName === "better";
  });

  const { volumeSnapshots, volumeSnapshotContents, volumeGroupSnapshots, volumeGroupSnapshotContents } =
    snapshotResources;
  const snapshot = { namespace, name: "s" };
  await kube.create(
    volumeSnapshots,
    {
      metadata: snapshot,
      spec: { source: { persistentVolumeClaimName: "data" }, volumeSnapshotClassName: "snapshots" },
    },
    { signal },
  );
  await world.eventually(
    "a snapshot",
    async () => (await ready(kube, volumeSnapshots, snapshot, signal)) === true,
  );
  const known = { namespace, name: "known" };
  const made = await kube.list(volumeSnapshotContents, { signal });
  await kube.create(
    volumeSnapshotContents,
    {
      metadata: { name: "by-hand" },
      spec: {
        driver: driverName,
        deletionPolicy: "Retain",
        source: { snapshotHandle: made.items[0]?.status?.snapshotHandle ?? "" },
        volumeSnapshotClassName: "snapshots",
        volumeSnapshotRef: known,
      },
    },
    { signal },
  );
  const ofContent = {
    source: { volumeSnapshotContentName: "by-hand" },
    volumeSnapshotClassName: "snapshots",
  };
  await kube.create(volumeSnapshots, { metadata: known, spec: ofContent }, { signal });
  await world.eventually(
    "a known snapshot",
    async () => (await ready(kube, volumeSnapshots, known, signal)) === true,
  );
  await kube.delete(volumeSnapshots, known, { signal });
  const group = { namespace, name: "g" };
  await kube.create(
    volumeGroupSnapshots,
    {
      metadata: group,
      spec: { source: { selector: { matchLabels: labels } }, volumeGroupSnapshotClassName: "groups" },
    },
    { signal },
  );
  await world.eventually(
    "a group",
    async () => (await ready(kube, volumeGroupSnapshots, group, signal)) === true,
  );
  const [groupContent] = (await kube.list(volumeGroupSnapshotContents, { signal })).items;
  const knownGroup = { namespace, name: "known" };
  await kube.create(
    volumeGroupSnapshotContents,
    {
      metadata: { name: "by-hand" },
      spec: {
        driver: driverName,
        deletionPolicy: "Retain",
        source: {
          groupSnapshotHandles: {
            volumeGroupSnapshotHandle: groupContent?.status?.volumeGroupSnapshotHandle ?? "",
            volumeSnapshotHandles: (groupContent?.status?.volumeSnapshotInfoList ?? []).map(
              ({ snapshotHandle = "" }) => snapshotHandle,
            ),
          },
        },
        volumeGroupSnapshotClassName: "groups",
        volumeGroupSnapshotRef: knownGroup,
      },
    },
    { signal },
  );
  const ofGroupContent = { volumeGroupSnapshotContentName: "by-hand" };
  await kube.create(
    volumeGroupSnapshots,
    { metadata: knownGroup, spec: { source: ofGroupContent, volumeGroupSnapshotClassName: "groups" } },
    { signal },
  );
  const places = placesOfText(GetVolumeGroupSnapshotResponseSchema, "").length;
  await world.eventually("the known group is looked at", async () => looksAtGroup() > places + 2);
  await kube.delete(volumeGroupSnapshots, knownGroup, { signal });
  await kube.delete(volumeGroupSnapshots, group, { signal });
  await kube.delete(volumeSnapshots, snapshot, { signal });
  await world.eventually("no snapshot", async () => (await world.snapshots()).length === 0);

  await kube.delete(resources.volumeAttachments, { name: "va" }, { signal });
  await world.eventually("detached", async () =>
    world.disks().every(({ attachments }) => attachments.length === 0),
  );
  await kube.delete(claims, ref, { signal });
  const released = { type: "merge" as const, body: { status: { phase: "Released" } } };
  await kube.patch(resources.persistentVolumes, { name: pvName }, released, ofStatus);
  await world.eventually("no disk", async () => world.disks().length === 0);
}

async function ready(kube: KubeClient, resource: Resource<KubeObject>, ref: object, signal: AbortSignal) {
  const object = await kube.get(resource, ref as { name: string }, { signal });
  return (object as { status?: { readyToUse?: boolean } } | undefined)?.status?.readyToUse;
}

/** A line as it would be written, errors with their causes. */
function textOf({ message, fields }: RecordedLine): string {
  const withErrors = (_: string, value: unknown) => {
    if (typeof value === "bigint") return String(value);
    if (!(value instanceof Error)) return value;
    return { ...value, message: value.message, stack: value.stack, cause: value.cause };
  };
  return `${message} ${JSON.stringify(fields, withErrors)}`;
}

function expectNone(what: string, texts: readonly string[]): void {
  const forms = [password, JSON.stringify(password).slice(1, -1), Buffer.from(password).toString("base64")];
  const bad = texts.filter((text) => forms.some((form) => text.includes(form)));
  expect(bad.slice(0, 5), `${what} holds a secret`).toEqual([]);
}
