import type { SidecarOptions } from "@longshore/sidecars";
import { afterEach, expect, test } from "vitest";
import { resolved } from "./add-flag-command.ts";
import type { ControllerValues } from "./controller-sidecars.ts";
import { controllerFlags } from "./controller-sidecars.ts";
import type { FlagTable } from "./flag-table.ts";
import { readGoArguments } from "./read-go-arguments.ts";
import {
  controllerSidecarNames,
  controllerSidecars,
  type FlaggedSidecar,
  togetherFlags,
  togetherOptions,
} from "./together-options.ts";

const read = <T extends FlagTable>(table: T, ...argv: readonly string[]) => {
  const { values, rest } = readGoArguments(table, argv);
  expect(rest).toEqual([]);
  return resolved(table, values);
};

const alone = <N extends keyof SidecarOptions>(name: N, ...argv: readonly string[]): SidecarOptions[N] => {
  const { flags, options }: FlaggedSidecar = controllerSidecars[name];
  const { values } = read({ ...flags, ...controllerFlags }, ...argv);
  return options(values as never, values as unknown as ControllerValues) as SidecarOptions[N];
};

const together = (...argv: readonly string[]) => togetherOptions(read(togetherFlags, ...argv) as never);

test("without flags each sidecar works as its reference does", () => {
  const backoff = { initialMs: 1000, maximumMs: 300_000 };
  expect(alone("attacher")).toMatchObject({
    timeoutMs: 15_000,
    workers: 10,
    resyncMs: 600_000,
    reconcileSyncMs: 60_000,
    maxEntries: 0,
    defaultFsType: "",
    backoff,
  });
  expect(alone("provisioner")).toMatchObject({
    timeoutMs: 10_000,
    workers: 100,
    volumeNamePrefix: "pvc",
    volumeNameUuidLength: -1,
    strictTopology: false,
    immediateTopology: true,
    extraCreateMetadata: false,
    defaultFsType: "",
    controllerPublishReadOnly: false,
    preventModeConversion: true,
    topology: true,
    backoff,
  });
  expect(alone("resizer")).toMatchObject({
    timeoutMs: 10_000,
    workers: 10,
    resyncMs: 600_000,
    handleVolumeInUseError: true,
    extraModifyMetadata: false,
    annotateFsResize: false,
    backoff,
  });
  expect(alone("snapshotter")).toMatchObject({
    timeoutMs: 60_000,
    workers: 10,
    resyncMs: 900_000,
    snapshotNamePrefix: "snapshot",
    snapshotNameUuidLength: -1,
    extraCreateMetadata: false,
    backoff,
  });
  expect(alone("health-monitor")).toMatchObject({
    timeoutMs: 15_000,
    workers: 10,
    monitorIntervalMs: 60_000,
    listVolumesIntervalMs: 300_000,
    enableNodeWatcher: false,
  });
});

test("leases are contended for as by the reference, and requests are not limited unless asked for", () => {
  const { values } = read(controllerFlags);
  expect(values).toMatchObject({
    "leader-election": false,
    "leader-election-lease-duration": 15_000,
    "leader-election-renew-deadline": 10_000,
    "leader-election-retry-period": 5000,
    "kube-api-qps": undefined,
  });
  const like = read(controllerFlags, "--compat=reference").values;
  expect([like["kube-api-qps"], like["kube-api-burst"]]).toEqual([5, 10]);
  expect(read(controllerFlags, "--compat=reference", "--kube-api-qps=50").values["kube-api-qps"]).toBe(50);
});

test("compat reaches the sidecars", () => {
  for (const options of [
    alone("provisioner", "--compat=reference"),
    together("--compat=reference").provisioner,
  ]) {
    expect(options?.compat).toBe("reference");
  }
  expect(together().provisioner?.compat).toBeUndefined();
});

test("together they work as each does alone", () => {
  const all = together();
  expect(Object.keys(all)).toEqual(controllerSidecarNames);
  for (const name of controllerSidecarNames) expect(all[name]).toEqual(alone(name));
});

test("each can be switched off", () => {
  for (const name of controllerSidecarNames) {
    expect(Object.keys(together(`--${name}=false`))).toEqual(
      controllerSidecarNames.filter((n) => n !== name),
    );
  }
});

test("a deadline is one sidecar's, or all sidecars' that have none of their own", () => {
  const all = together("--timeout=20s", "--attacher-timeout=30s", "--worker-threads=7");
  expect([all.provisioner?.timeoutMs, all.attacher?.timeoutMs, all.resizer?.timeoutMs]).toEqual([
    20_000, 30_000, 20_000,
  ]);
  expect([all.provisioner?.workers, all.attacher?.workers, all.resizer?.workers]).toEqual([7, 7, 10]);
});

test("what sidecars mean alike is said once", () => {
  const all = together("--extra-create-metadata", "--default-fstype=xfs", "--retry-interval-start=2s");
  expect([all.provisioner?.extraCreateMetadata, all.snapshotter?.extraCreateMetadata]).toEqual([true, true]);
  expect([all.provisioner?.defaultFsType, all.attacher?.defaultFsType]).toEqual(["xfs", "xfs"]);
  expect(all.resizer?.backoff).toEqual({ initialMs: 2000, maximumMs: 300_000 });
});

test("gates of all are in one flag, and reach those that know them", () => {
  const all = together("--feature-gates=Topology=false,AnnotateFsResize=true");
  expect([all.provisioner?.topology, all.resizer?.annotateFsResize]).toEqual([false, true]);
});

let { NODE_NAME } = process.env;
afterEach(() => {
  if (NODE_NAME === undefined) delete process.env.NODE_NAME;
  else process.env.NODE_NAME = NODE_NAME;
  ({ NODE_NAME } = process.env);
});

test("names of volumes and snapshots need a prefix", () => {
  expect(() => alone("provisioner", "--volume-name-prefix=")).toThrow(
    "--volume-name-prefix must not be empty",
  );
  expect(() => alone("snapshotter", "--groupsnapshot-name-prefix=")).toThrow(
    "--groupsnapshot-name-prefix must not be empty",
  );
});

test("a sidecar of one node must know which", () => {
  delete process.env.NODE_NAME;
  expect(() => alone("snapshotter", "--node-deployment")).toThrow("NODE_NAME");
  process.env.NODE_NAME = "node-1";
  expect(alone("snapshotter", "--node-deployment").nodeName).toBe("node-1");
});

test("arguments of well-known manifests are understood", () => {
  const manifests: readonly (readonly [keyof SidecarOptions, string])[] = [
    [
      "provisioner",
      "--csi-address=$(ADDRESS) --v=2 --feature-gates=Topology=true --extra-create-metadata --leader-election=true --default-fstype=ext4 --timeout=60s",
    ],
    [
      "provisioner",
      "--v=1 --timeout=150s --retry-interval-start=500ms --leader-election=true --feature-gates=HonorPVReclaimPolicy=true --prevent-volume-mode-conversion=true --default-fstype=ext4 --extra-create-metadata=true --immediate-topology=false --http-endpoint=$(POD_IP):8090",
    ],
    [
      "attacher",
      "--v=5 --csi-address=/csi/csi.sock --http-endpoint=:22011 --leader-election --leader-election-namespace=$(PDCSI_NAMESPACE) --timeout=250s --max-grpc-log-length=10000",
    ],
    [
      "attacher",
      "-v=2 -csi-address=$(ADDRESS) -timeout=1200s -leader-election --leader-election-namespace=kube-system -worker-threads=1000 -kube-api-qps=200 -kube-api-burst=400",
    ],
    [
      "resizer",
      "--csi-address=$(ADDRESS) --v=2 --leader-election=true --handle-volume-inuse-error=false --feature-gates=RecoverVolumeExpansionFailure=true --timeout=240s --workers=100",
    ],
    [
      "snapshotter",
      "--v=2 --csi-address=$(ADDRESS) --leader-election=true --extra-create-metadata --kube-api-qps=20 --kube-api-burst=100 --feature-gates=CSIVolumeGroupSnapshot=true --snapshot-name-prefix=snap",
    ],
    [
      "health-monitor",
      "--v=5 --csi-address=$(ADDRESS) --leader-election --http-endpoint=:8080 --enable-node-watcher=true",
    ],
  ];
  for (const [name, line] of manifests) expect(alone(name, ...line.split(" "))).toBeDefined();
});
