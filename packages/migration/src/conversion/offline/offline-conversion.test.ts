/** What is written for a dump: files, the order of the script, and what is refused or missing. */
import type { KubeObject } from "@longshore/kube";
import { describe, expect, test } from "vitest";
import { offlineConversion } from "./offline-conversion.ts";

const listOf = (...items: readonly object[]) => ({ apiVersion: "v1", kind: "List", items });
const stored = (
  apiVersion: string,
  kind: string,
  name: string,
  fields: object = {},
  metadata: object = {},
) => ({
  apiVersion,
  kind,
  metadata: { name, uid: `uid-${kind}-${name}`, resourceVersion: "1", ...metadata },
  ...fields,
});
const shop = { namespace: "shop" };

function volumeOf(name: string, disk: string, claim = name): readonly object[] {
  const claimRef = { namespace: "shop", name: claim, uid: `uid-PersistentVolumeClaim-${claim}` };
  const spec = {
    awsElasticBlockStore: { volumeID: disk },
    accessModes: ["ReadWriteOnce"],
    capacity: { storage: "1Gi" },
    persistentVolumeReclaimPolicy: "Delete",
    claimRef,
  };
  return [
    stored("v1", "PersistentVolume", name, { spec, status: { phase: "Bound" } }),
    stored(
      "v1",
      "PersistentVolumeClaim",
      claim,
      { spec: { volumeName: name, accessModes: ["ReadWriteOnce"] }, status: { phase: "Bound" } },
      shop,
    ),
  ];
}

const pods = (name: string, set: string, ...claims: readonly string[]) => {
  const owner = {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    name: set,
    uid: `uid-StatefulSet-${set}`,
    controller: true,
  };
  const volumes = claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } }));
  return stored(
    "v1",
    "Pod",
    name,
    { spec: { volumes }, status: { phase: "Running" } },
    { ...shop, ownerReferences: [owner] },
  );
};
const set = (name: string, replicas: number) =>
  stored("apps/v1", "StatefulSet", name, { spec: { replicas, template: { spec: {} } } }, shop);

const around = [
  stored("v1", "Node", "n1"),
  stored("storage.k8s.io/v1", "CSIDriver", "ebs.csi.aws.com", { spec: {} }),
  pods("idle", "none"),
];

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

const offline = (...objects: readonly object[]) =>
  offlineConversion([{ name: "dump", bytes: bytesOf(JSON.stringify(listOf(...objects))) }], {
    scaleDown: true,
  });

describe("the files of a conversion", () => {
  test("are the scripts and a directory for each volume", async () => {
    const { files, gaps, refused } = await offline(
      ...around,
      ...volumeOf("a", "vol-1"),
      ...volumeOf("b", "vol-2"),
    );
    expect({ gaps, refused }).toEqual({ gaps: [], refused: [] });
    expect(files.map(({ path, executable }) => `${path}${executable ? "*" : ""}`)).toEqual([
      "convert.sh*",
      "undo.sh*",
      ...["1-a", "2-b"].flatMap((directory) =>
        [
          "volume.yaml",
          "claim.yaml",
          "undo-volume.yaml",
          "undo-claim.yaml",
          "before.yaml",
          "owners",
          "disk-names",
        ].map((name) => `${directory}/${name}`),
      ),
    ]);
    const of = (path: string) => files.find((file) => file.path === path)?.text;
    expect(of("convert.sh")).toContain("\n  claim_uid=uid-PersistentVolumeClaim-a\n");
    expect(of("undo.sh")).not.toContain("claim_uid=uid-");
    expect(of("1-a/disk-names")).toBe(
      "kubernetes.io/aws-ebs/vol-1\nkubernetes.io/csi/ebs.csi.aws.com^vol-1\n",
    );
    for (const file of ["volume.yaml", "undo-volume.yaml"])
      expect(of(`1-a/${file}`)).toContain("persistentVolumeReclaimPolicy: Retain\n");
    expect(of("1-a/undo-volume.yaml")).toContain("volumeID: vol-1\n");
    expect(of("1-a/undo-volume.yaml")).not.toContain("uid");
    expect(of("1-a/claim.yaml")).toContain("volumeName: a-csi\n");
    expect(of("1-a/undo-claim.yaml")).toContain("volumeName: a\n");
  });

  test("volumes of one workload, also by way of others, are converted while it has no replicas", async () => {
    const { files } = await offline(
      ...around,
      ...[..."abcd"].flatMap((name) => volumeOf(name, `vol-${name}`)),
      ...[set("one", 3), set("two", 1), pods("one-0", "one", "a", "c"), pods("two-0", "two", "c")],
      pods("two-1", "two", "d"),
    );
    const script = files[0]?.text ?? "";
    const calls = script
      .slice(script.lastIndexOf("restore_policy\n}"))
      .split("\n")
      .filter((line) => /^(?: {2}scale_down|scale_up|if|fi|volume_\d$|say "| {2}old=)/.test(line));
    expect(calls).toEqual([
      "  old=a",
      "  old=c",
      "  old=d",
      "if any_left volume_1 volume_2 volume_3; then",
      "  scale_down statefulset shop one uid-StatefulSet-one",
      "  scale_down statefulset shop two uid-StatefulSet-two",
      "fi",
      ...['say "1 of 4"', "volume_1", 'say "2 of 4"', "volume_2", 'say "3 of 4"', "volume_3"],
      "scale_up statefulset shop one 3",
      "scale_up statefulset shop two 1",
      ...["  old=b", 'say "4 of 4"', "volume_4"],
    ]);
  });

  test("what a dump says is a word of the shell, or refused", async () => {
    const { files } = await offline(...around, ...volumeOf("a", "vol-1'; touch x; '"));
    expect(files[0]?.text).toContain("new_source='ebs.csi.aws.com vol-1'\\''; touch x; '\\'''\n");
    expect(files[1]?.text).toContain("new_source='vol-1'\\''; touch x; '\\'''\n");
    for (const name of ["../a", "a b", "$(id)", "A"]) {
      const { files: none, refused } = await offline(...around, ...volumeOf(name, "vol-1", "claim"));
      expect(none).toEqual([]);
      expect(refused[0]?.refusals[0]?.reason).toContain(`${JSON.stringify(name)} is no name`);
    }
    const [pv, claim] = volumeOf("a", "vol-1");
    const owned = {
      ...claim,
      metadata: {
        ...(claim as KubeObject).metadata,
        uid: "x y",
      },
    };
    const bound = JSON.parse(JSON.stringify(pv).replace("uid-PersistentVolumeClaim-a", "x y"));
    expect((await offline(...around, bound, owned)).refused[0]?.refusals[0]?.reason).toContain(
      '"x y" is no name',
    );
  });

  test("what is not in the dump is said", async () => {
    const [pv = {}, claim = {}] = volumeOf("a", "vol-1");
    expect((await offline(pv, claim)).gaps).toEqual([
      "the dump has no Pod; add it to the command that writes the dump",
      "the dump has no Node; add it to the command that writes the dump",
    ]);
    const manifest = { ...pv, metadata: { name: "a" } };
    const { gaps, files } = await offline(...around, manifest, claim);
    expect(gaps).toEqual([
      "PersistentVolume a: metadata.uid is missing; write the dump with kubectl get -o json",
      "the dump has no PersistentVolume; add it to the command that writes the dump",
    ]);
    expect(files).toEqual([]);
  });
});
