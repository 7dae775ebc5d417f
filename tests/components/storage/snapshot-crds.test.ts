/** The definitions of the snapshot kinds on the embedded API server, at both ends of what it emulates. */
import { fileURLToPath } from "node:url";
import { createApiServer, memoryStore, readDefinitions } from "@longshore/apiserver";
import type { KubeApiError, KubeObject, Resource } from "@longshore/kube";
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { snapshotCrdsUrl } from "@longshore/storage";
import { describe, expect, it } from "vitest";

const signal = new AbortController().signal;

const aResource = (group: string, version: string, kind: string, plural: string, namespaced: boolean) =>
  ({ group, versions: [version], kind, plural, namespaced }) as Resource<KubeObject>;
const snapshots = "snapshot.storage.k8s.io";
const groups = "groupsnapshot.storage.k8s.io";
const volumeSnapshots = aResource(snapshots, "v1", "VolumeSnapshot", "volumesnapshots", true);
const contents = aResource(snapshots, "v1", "VolumeSnapshotContent", "volumesnapshotcontents", false);
const groupContents = aResource(
  groups,
  "v1",
  "VolumeGroupSnapshotContent",
  "volumegroupsnapshotcontents",
  false,
);

async function aServer(emulatedVersion: string) {
  const definitions = await readDefinitions([fileURLToPath(snapshotCrdsUrl)]);
  const env = {
    clock: new VirtualClock(),
    random: new SeededRandom(1),
    logger: silentLogger,
    meter: noMeter,
  };
  const server = createApiServer(env, {
    store: memoryStore(),
    definitions,
    emulatedVersion,
    controllers: false,
  });
  return { definitions, server, kube: server.client() };
}

async function refusal(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
  } catch (error) {
    return (error as KubeApiError).message;
  }
  return "";
}

describe.each(["1.20", "1.36"])("with a server of %s", (version) => {
  it("all kinds are served at once", async () => {
    const { definitions, server } = await aServer(version);
    expect(definitions).toHaveLength(6);
    const served = server.registry.context.kinds.all().filter((kind) => kind.custom !== undefined);
    expect(served.map((kind) => `${kind.group}/${kind.versions.join(",")} ${kind.kind}`).sort()).toEqual([
      `${groups}/v1,v1beta2,v1beta1 VolumeGroupSnapshot`,
      `${groups}/v1,v1beta2,v1beta1 VolumeGroupSnapshotClass`,
      `${groups}/v1,v1beta2,v1beta1 VolumeGroupSnapshotContent`,
      `${snapshots}/v1 VolumeSnapshot`,
      `${snapshots}/v1 VolumeSnapshotClass`,
      `${snapshots}/v1 VolumeSnapshotContent`,
    ]);
  });

  it("a snapshot has one source, and what is known of it in its status", async () => {
    const { kube } = await aServer(version);
    const aSnapshot = (source: object) =>
      ({ metadata: { name: "s", namespace: "default" }, spec: { source } }) as KubeObject;
    expect(await refusal(kube.create(volumeSnapshots, aSnapshot({}), { signal }))).toContain(
      '"spec.source" must validate one and only one schema (oneOf). Found none valid',
    );
    const both = { persistentVolumeClaimName: "c", volumeSnapshotContentName: "d" };
    expect(await refusal(kube.create(volumeSnapshots, aSnapshot(both), { signal }))).toContain(
      "Found 2 valid alternatives",
    );
    await kube.create(volumeSnapshots, aSnapshot({ persistentVolumeClaimName: "c" }), { signal });
    const status = {
      readyToUse: true,
      restoreSize: "1Gi",
      creationTime: "2024-01-01T00:00:00Z",
      error: { message: "m" },
    };
    const body = { status: { ...status, boundVolumeSnapshotContentName: "snapcontent-1" } };
    const ref = { name: "s", namespace: "default" };
    const written = await kube.patch(
      volumeSnapshots,
      ref,
      { type: "merge", body },
      { signal, subresource: "status" },
    );
    expect(written).toMatchObject(body);
  });

  it("contents say whose they are and what becomes of them", async () => {
    const { kube } = await aServer(version);
    const spec = {
      deletionPolicy: "Delete",
      driver: "d",
      source: { volumeHandle: "v" },
      volumeSnapshotRef: { kind: "VolumeSnapshot", name: "s", namespace: "default", uid: "u" },
    };
    const content = (more: object) => ({ metadata: { name: "c" }, spec: { ...spec, ...more } }) as KubeObject;
    expect(await refusal(kube.create(contents, content({ deletionPolicy: "Keep" }), { signal }))).toContain(
      'spec.deletionPolicy: Unsupported value: "Keep": supported values: "Delete", "Retain"',
    );
    expect(await kube.create(contents, content({}), { signal })).toMatchObject({ spec });
    const { volumeSnapshotRef: volumeGroupSnapshotRef, ...rest } = {
      ...spec,
      source: { volumeHandles: ["v"] },
    };
    const group = { metadata: { name: "g" }, spec: { ...rest, volumeGroupSnapshotRef } } as KubeObject;
    expect(await kube.create(groupContents, group, { signal })).toMatchObject({ apiVersion: `${groups}/v1` });
  });
});

it("what a snapshot is made of stays", async () => {
  const { kube } = await aServer("1.36");
  const spec = { source: { persistentVolumeClaimName: "c" } };
  await kube.create(volumeSnapshots, { metadata: { name: "s", namespace: "default" }, spec } as KubeObject, {
    signal,
  });
  const ref = { name: "s", namespace: "default" };
  const change = (body: object) =>
    refusal(kube.patch(volumeSnapshots, ref, { type: "merge", body: { spec: body } }, { signal }));
  expect(await change({ source: { persistentVolumeClaimName: "other" } })).toContain(
    "persistentVolumeClaimName is immutable",
  );
  expect(
    await change({ source: { persistentVolumeClaimName: null, volumeSnapshotContentName: "x" } }),
  ).toContain("persistentVolumeClaimName is required once set");
  expect(await change({ volumeSnapshotClassName: "" })).toContain("must not be the empty string when set");
  expect(await change({ volumeSnapshotClassName: "fast" })).toBe("");
});
