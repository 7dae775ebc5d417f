/** A whole crossing and its way back, in one process and on the virtual clock. */
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { expect, it } from "vitest";
import { createInProcessCluster } from "../cluster/in-process-cluster.ts";
import { clusterConfig } from "../layout/cluster-config.ts";
import { readerProgram, recordPrograms, writerProgram } from "../records/in-process-programs.ts";
import { observedInProcessCluster } from "../testing/observed-in-process-cluster.ts";
import { type DemoCluster, runDemo } from "./demo.ts";
import { isProof } from "./demo-report.ts";

it("carries a cluster of three nodes to CSI and back on the virtual clock (migration-controllers.md C1, C2; contract.md C1)", async () => {
  const clock = new VirtualClock();
  const env = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
  const config = clusterConfig(3, "unprivileged");
  const signal = new AbortController().signal;
  const report = await clock.run(
    (async () => {
      const cluster = await createInProcessCluster(env, {
        config,
        programs: (host) => recordPrograms(clock, host),
      });
      const demo: DemoCluster = {
        ...observedInProcessCluster(cluster),
        cloudAttachments: async () => cluster.cloud.disks().flatMap((d) => d.attachments).length,
      };
      const result = await runDemo(
        env,
        demo,
        {
          replicas: 3,
          writerCommand: [writerProgram, "$(LONGSHORE_MOUNT_DATA)", "$(POD_NAME)", "500"],
          readerCommand: [readerProgram, "$(LONGSHORE_MOUNT_DATA)"],
          restMs: 5000,
        },
        signal,
      );
      await cluster.stop();
      return result;
    })(),
  );
  expect(report).toMatchObject({ lostWrites: 0, strandedAttachments: 0, inTreeCallsAfterMigration: 0 });
  expect(report.acknowledgedWrites).toBeGreaterThan(30);
  expect(isProof(report)).toBe(true);
  const zones = report.volumes.map(({ inTreeHandle, csiHandle }) =>
    inTreeHandle.replace(`/${csiHandle}`, "").replace("aws://", ""),
  );
  expect(zones.sort()).toEqual(["us-east-1a", "us-east-1b", "us-east-1c"]);
});
