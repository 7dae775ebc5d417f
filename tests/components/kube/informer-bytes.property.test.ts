/**
 * The laws of the informer over real sockets: connections that are cut at any byte, arrive in pieces or fall silent,
 * on top of all that the server itself may do. Time is virtual; only the bytes are real.
 */
import { createHttpClient, fixedCredential, resources, startInformer } from "@longshore/kube";
import { SeededRandom, type VirtualClock } from "@longshore/runtime";
import { virtualEnv } from "@longshore/testing/kube";
import fc from "fast-check";
import { expect, test } from "vitest";
import { AdversarialServer } from "../../../packages/kube/src/testing/adversarial-server.ts";
import { fold, type Step, step, take, versions } from "../../../packages/kube/src/testing/informer-story.ts";
import { type AdversarialSocket, serveAdversary } from "./adversarial-socket.ts";

/** Moves time in steps, and lets sockets carry bytes in between; until `holds`, where that is given. */
async function pass(
  clock: VirtualClock,
  socket: AdversarialSocket,
  ms: number,
  holds = () => false,
): Promise<void> {
  for (let leftMs = ms; leftMs > 0 && !holds(); leftMs -= 500) {
    await clock.advance(Math.min(500, leftMs));
    await socket.settled();
  }
}

async function run(seed: number, steps: readonly Step[], faultRate: number): Promise<number> {
  const env = virtualEnv(seed);
  const random = new SeededRandom(seed);
  const server = new AdversarialServer(env.clock, random.fork("server"));
  server.faultRate = 40;
  const socket = await serveAdversary(random.fork("socket"), server.client());
  socket.faultRate = faultRate;
  const config = { server: socket.url, ca: socket.ca, credentials: fixedCredential({}) };
  const kube = createHttpClient(env, config);
  const informer = startInformer({ ...env, kube }, resources.configMaps);
  const folded = fold(informer);
  const memory = { snapshot: server.snapshot() };
  try {
    for (const step of steps) {
      take(step, server, memory);
      if (step.do === "wait") await pass(env.clock, socket, Math.min(step.ms, 5_000));
      if (step.do === "compact") env.clock.jumpWall(random.below(7_200_000, "wall") - 3_600_000);
      expect(versions(folded.values())).toEqual(versions(informer.list()));
    }
    server.faultRate = 0;
    socket.faultRate = 0;
    const isQuiet = () =>
      informer.hasSynced() && `${versions(informer.list())}` === `${versions(server.objects.values())}`;
    // The informer closes a silent connection only after minutes.
    await pass(env.clock, socket, 60 * 60_000, isQuiet);
    expect(informer.hasSynced()).toBe(true);
    expect(versions(informer.list())).toEqual(versions(server.objects.values()));
    expect(versions(folded.values())).toEqual(versions(informer.list()));
    expect(server.listsInFlightMax).toBe(1);
    return socket.faults;
  } finally {
    await informer.stop();
    await kube.close();
    await socket.close();
  }
}

test("over sockets that do their worst, the cache equals the server in the end", async () => {
  let faults = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.integer(),
      fc.array(step, { minLength: 5, maxLength: 30 }),
      fc.constantFrom(1, 2, 4),
      async (seed, steps, faultRate) => {
        faults += await run(seed, steps, faultRate);
      },
    ),
    { numRuns: 12, interruptAfterTimeLimit: 10_000 },
  );
  expect(faults).toBeGreaterThan(0);
});
