/** The gate on the cluster in one process, under the virtual clock: what a good driver passes, and what it must refuse. */
import { fileURLToPath } from "node:url";
import { readDefinitions } from "@longshore/apiserver";
import { type CsiServices, CsiStatusError, type ServedCall } from "@longshore/csi";
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { snapshotCrdsUrl } from "@longshore/storage";
import { expect, test } from "vitest";
import { createInProcessCluster } from "../cluster/in-process-cluster.ts";
import { clusterConfig } from "../layout/cluster-config.ts";
import type { DriverCall } from "../layout/driver-calls.ts";
import type { PluginName } from "../layout/plugins.ts";
import {
  deviceReaderProgram,
  deviceWriterProgram,
  readerProgram,
  recordPrograms,
  writerProgram,
} from "../records/in-process-programs.ts";
import { observedInProcessCluster } from "../testing/observed-in-process-cluster.ts";
import {
  features,
  type QualificationReport,
  reasonsAgainst,
  type Skippable,
  verdictOf,
} from "./qualification-report.ts";
import { runQualification } from "./run-qualification.ts";

async function qualify(
  change: {
    readonly rpc?: string;
    readonly hide?: string;
    readonly plugin?: PluginName;
    readonly skip?: readonly Skippable[];
  } = {},
): Promise<QualificationReport> {
  const clock = new VirtualClock();
  const env = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
  const { plugin = "aws-ebs" } = change;
  const config = clusterConfig(3, "unprivileged", { plugins: [plugin] });
  const snapshotDefinitions = await readDefinitions([fileURLToPath(snapshotCrdsUrl)]);
  const calls: DriverCall[] = [];
  const onDriverCall = (place: string, call: ServedCall) => {
    if (call.rpc !== change.hide) calls.push({ place, atMs: clock.now().getTime(), ...call });
  };
  return clock.run(
    (async () => {
      const cluster = await createInProcessCluster(env, {
        config,
        programs: (host) => recordPrograms(clock, host),
        snapshotDefinitions,
        onDriverCall,
        isolate: (_, seams) =>
          change.rpc === undefined
            ? seams
            : {
                ...seams,
                listener: {
                  ...seams.listener,
                  serve: (at, services) => seams.listener.serve(at, failing(services, change.rpc ?? "")),
                },
              },
      });
      const report = await runQualification(
        env,
        {
          ...observedInProcessCluster(cluster),
          driverCalls: async () => [...calls],
          async restartNode(nodeName) {
            for (const component of [nodeName, `csi-node/${nodeName}`]) await cluster.restart(component);
          },
        },
        {
          plugin,
          ...(change.skip === undefined ? {} : { skip: change.skip }),
          writerCommand: [writerProgram, "$(LONGSHORE_MOUNT_DATA)", "$(POD_NAME)", "500"],
          readerCommand: [readerProgram, "$(LONGSHORE_MOUNT_DATA)"],
          deviceWriterCommand: [deviceWriterProgram, "$(LONGSHORE_MOUNT_DATA)", "$(POD_NAME)", "500"],
          deviceReaderCommand: [deviceReaderProgram, "$(LONGSHORE_MOUNT_DATA)"],
        },
        new AbortController().signal,
      );
      await cluster.stop();
      return report;
    })(),
  );
}

/** A driver that fails at one RPC. */
function failing(services: CsiServices, rpc: string): CsiServices {
  const fail = async () => {
    throw new CsiStatusError("INTERNAL", "broken for the test");
  };
  return { ...services, controller: { ...services.controller, [rpc]: fail } };
}

const verdicts = (report: QualificationReport) =>
  Object.fromEntries(report.behaviours.map(({ behaviour, verdict }) => [behaviour, verdict]));

test("the reference driver serves all that in-tree volumes do, and may take over", async () => {
  const report = await qualify();
  expect(report.behaviours.filter(({ verdict }) => verdict === "failed")).toEqual([]);
  expect(verdicts(report)).toMatchObject({
    provision: "driver",
    topology: "driver",
    attach: "driver",
    mount: "driver",
    reconstruction: "driver",
    "write/read": "driver",
    expand: "driver",
    snapshot: "driver",
    delete: "driver",
    inline: "driver",
    block: "driver",
  });
  expect(report).toMatchObject({ differences: [], inTreeCalls: 0 });
  expect(Object.fromEntries(report.features.map(({ feature, verdict }) => [feature, verdict]))).toEqual({
    ...Object.fromEntries(features.map((feature) => [feature, "same"])),
    "access mode ReadWriteOncePod": "gained",
  });
  const served = report.features.filter(({ inTree }) => inTree.kind === "served");
  expect(served.map(({ feature }) => feature)).toEqual([
    "volume mode Block",
    "mount options",
    "subPath",
    "fsGroup",
    "generic ephemeral volume",
  ]);
  expect(reasonsAgainst(report)).toEqual([]);
}, 60_000);

test("a driver that cannot expand is refused for that, and for nothing else", async () => {
  const report = await qualify({ rpc: "controllerExpandVolume" });
  const failed = report.behaviours.filter(({ verdict }) => verdict === "failed");
  expect(failed.map(({ behaviour }) => behaviour)).toEqual(["expand"]);
  expect(reasonsAgainst(report)).toContainEqual(
    expect.stringMatching(/^expand failed: .*broken for the test/),
  );
}, 60_000);

test("what is skipped is not tried, and the verdict says so; what no volume was made for is not verified", async () => {
  const skip = ["expand", "block", "subPath"] as const;
  const except = await qualify({ rpc: "controllerExpandVolume", skip });
  expect(verdicts(except)).toMatchObject({ expand: "skipped", block: "skipped", snapshot: "driver" });
  expect(except.features.map(({ feature }) => feature)).not.toContain("subPath");
  expect(except.skipped).toEqual(skip);
  expect(reasonsAgainst(except)).toEqual([]);
  expect(verdictOf(except)).toBe("promotable except");

  const broken = await qualify({ rpc: "createVolume", skip: ["block"] });
  expect(verdicts(broken)).toMatchObject({ provision: "failed", mount: "not verified", block: "skipped" });
  expect(reasonsAgainst(broken)).toContain(
    "mount could not be verified: no volume was provisioned to try it on",
  );
  expect(verdictOf(broken)).toBe("not promotable");
}, 60_000);

test("what the driver's call log does not show counts as not served by it", async () => {
  const report = await qualify({ hide: "ControllerPublishVolume" });
  expect(verdicts(report)).toMatchObject({ provision: "driver", attach: "failed", inline: "failed" });
  const attach = report.behaviours.find(({ behaviour }) => behaviour === "attach");
  expect(attach?.detail).toMatch(/call log has no ControllerPublishVolume for vol-/);
}, 60_000);

/** The paths at which a migrated PersistentVolume differs whatever the driver does (docs/behaviour/volume-plugins.md 8.3). */
const others: readonly (readonly [PluginName, readonly string[]])[] = [
  ["gce-pd", []],
  [
    "azure-disk",
    [
      "labels.topology.kubernetes.io/region",
      "labels.topology.kubernetes.io/zone",
      "spec.nodeAffinity.required.nodeSelectorTerms",
    ],
  ],
  ["azure-file", []],
  ["cinder", ["labels.topology.kubernetes.io/region", "spec.nodeAffinity.required.nodeSelectorTerms"]],
  ["vsphere-volume", ["spec.vsphereVolume.storagePolicyName"]],
  ["portworx-volume", []],
  ["rbd", ["spec.rbd.monitors", "spec.rbd.secretRef.name", "spec.rbd.user"]],
];

test.each(others)(
  "the reference driver serves what volumes of %s do in-tree",
  async (plugin, losses) => {
    const report = await qualify({ plugin });
    expect(report.behaviours.filter(({ verdict }) => verdict === "failed")).toEqual([]);
    expect(report).toMatchObject({ plugin, inTreeCalls: 0, differences: [] });
    expect(report.losses.map((loss) => loss.slice(0, loss.indexOf(":")))).toEqual(losses);
    expect(report.features.filter(({ verdict }) => verdict === "lost")).toEqual([]);
    expect(reasonsAgainst(report)).toEqual([]);
  },
  60_000,
);
