/** The crossing and its way back with the volumes of each plugin, and of all of them at once, on the virtual clock. */
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { cloudProviders } from "@longshore/volumes";
import { describe, expect, it } from "vitest";
import { createInProcessCluster } from "../cluster/in-process-cluster.ts";
import { clusterConfig } from "../layout/cluster-config.ts";
import { clusterPlugin, type PluginName } from "../layout/plugins.ts";
import { readerProgram, recordPrograms, writerProgram } from "../records/in-process-programs.ts";
import { observedInProcessCluster } from "../testing/observed-in-process-cluster.ts";
import { runDemo } from "./demo.ts";
import { type DemoReport, isProof } from "./demo-report.ts";

async function carried(plugins: readonly PluginName[], nodes: number, replicas: number): Promise<DemoReport> {
  const clock = new VirtualClock();
  const env = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
  const signal = new AbortController().signal;
  return clock.run(
    (async () => {
      const cluster = await createInProcessCluster(env, {
        config: clusterConfig(nodes, "unprivileged", { plugins }),
        programs: (host) => recordPrograms(clock, host),
      });
      const report = await runDemo(
        env,
        {
          ...observedInProcessCluster(cluster),
          cloudAttachments: async () => cluster.cloud.disks().flatMap((d) => d.attachments).length,
        },
        {
          plugins,
          replicas,
          writerCommand: [writerProgram, "$(LONGSHORE_MOUNT_DATA)", "$(POD_NAME)", "500"],
          readerCommand: [readerProgram, "$(LONGSHORE_MOUNT_DATA)"],
          restMs: 5000,
        },
        signal,
      );
      await cluster.stop();
      return report;
    })(),
  );
}

const proof = { lostWrites: 0, strandedAttachments: 0, inTreeCallsAfterMigration: 0 };

describe("a cluster goes to CSI and back", () => {
  it.each(cloudProviders)(
    "with the volumes of %s",
    async (plugin) => {
      const report = await carried([plugin], 2, 2);
      expect(report).toMatchObject(proof);
      expect(isProof(report)).toBe(true);
      expect(report.volumes.map((volume) => volume.plugin)).toEqual([plugin, plugin]);
      const { isShared } = clusterPlugin(plugin);
      expect(new Set(report.volumes.map(({ pv }) => pv)).size).toBe(isShared ? 1 : 2);
      for (const { inTreeHandle, csiHandle } of report.volumes) {
        expect(inTreeHandle).not.toBe("");
        expect(csiHandle).not.toBe("");
      }
    },
    30_000,
  );

  it("with the volumes of all plugins at once, one plugin after the other", async () => {
    const report = await carried(cloudProviders, 2, 1);
    expect(report).toMatchObject(proof);
    expect(isProof(report)).toBe(true);
    expect(report.plugins.map(({ plugin }) => plugin)).toEqual([...cloudProviders]);
    expect(report.plugins.map((counted) => counted.inTreeCallsAfterMigration)).toEqual(
      cloudProviders.map(() => 0),
    );
  }, 120_000);
});
