import { createApiServer, memoryStore } from "@longshore/apiserver";
import { readPublishedGates } from "@longshore/migration";
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { expect, it } from "vitest";
import { publishControlPlaneGates } from "./publish-control-plane-gates.ts";

const { signal } = new AbortController();

it("publishes the gates where a crossing of any cluster reads them", async () => {
  const env = {
    clock: new VirtualClock(),
    random: new SeededRandom(1),
    logger: silentLogger,
    meter: noMeter,
  };
  const kube = createApiServer(env, { store: memoryStore() }).client();
  expect(await readPublishedGates(kube, signal)).toBeUndefined();
  const gates = { CSIMigration: true, CSIMigrationAWS: false };
  await publishControlPlaneGates(kube, gates, signal);
  expect(await readPublishedGates(kube, signal)).toEqual(gates);
});
