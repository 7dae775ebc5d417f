/**
 * What the components of a cluster ask the API server for, each as a user of its own, through a whole crossing and back:
 * nothing is refused to them. A node's agent, as `system:node:NAME` with the node authorizer and NodeRestriction on,
 * asks for claims, volumes and attachments one by one, never for a list or a watch: one that is taken over must not
 * learn what runs elsewhere.
 */
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
// Tests stand outside the floors.
import { type AccessLog, watchedClient } from "@longshore/testing/deployment";
import { expect, it } from "vitest";
import { createInProcessCluster } from "../cluster/in-process-cluster.ts";
import { clusterConfig } from "../layout/cluster-config.ts";
import { readerProgram, recordPrograms, writerProgram } from "../records/in-process-programs.ts";
import { observedInProcessCluster } from "../testing/observed-in-process-cluster.ts";
import { runDemo } from "./demo.ts";

it("no component is refused anything, and nodes ask for claims, volumes and attachments by name only", async () => {
  const clock = new VirtualClock();
  const env = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
  const config = clusterConfig(3, "unprivileged");
  const names = new Set(config.nodes.map(({ name }) => name));
  const log: AccessLog = { asked: new Set(), refused: [] };
  const others: AccessLog = { asked: new Set(), refused: [] };
  const report = await clock.run(
    (async () => {
      const cluster = await createInProcessCluster(env, {
        config,
        programs: (host) => recordPrograms(clock, host),
        isolate: (component, seams) => ({
          ...seams,
          kube: watchedClient(seams.kube, names.has(component) ? log : others),
        }),
      });
      const result = await runDemo(
        env,
        {
          ...observedInProcessCluster(cluster),
          cloudAttachments: async () => cluster.cloud.disks().flatMap((d) => d.attachments).length,
        },
        {
          replicas: 3,
          writerCommand: [writerProgram, "$(LONGSHORE_MOUNT_DATA)", "$(POD_NAME)", "500"],
          readerCommand: [readerProgram, "$(LONGSHORE_MOUNT_DATA)"],
          restMs: 5000,
        },
        new AbortController().signal,
      );
      await cluster.stop();
      return result;
    })(),
  );
  expect(report).toMatchObject({ lostWrites: 0, inTreeCallsAfterMigration: 0 });
  expect(others.refused).toEqual([]);
  expect(log.refused).toEqual([]);
  const protectedKinds = ["persistentvolumeclaims", "persistentvolumes", "volumeattachments"];
  const verbs = (plural: string) =>
    [...log.asked].filter((asked) => asked.endsWith(` ${plural}`)).map((asked) => asked.split(" ")[0]);
  for (const plural of protectedKinds) {
    expect(verbs(plural), plural).toContain("get");
    expect(verbs(plural), plural).not.toContain("list");
    expect(verbs(plural), plural).not.toContain("watch");
  }
});
