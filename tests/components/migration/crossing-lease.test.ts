/** One crossing at a time in a cluster: the Lease of crossings, on the embedded API server. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { resources } from "@longshore/kube";
import { crossingRoles, underCrossingLease } from "@longshore/migration";
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { expect, test } from "vitest";

const signal = new AbortController().signal;

function world() {
  const clock = new VirtualClock();
  const env = { clock, random: new SeededRandom(3), logger: silentLogger, meter: noMeter };
  const server = createApiServer(env, { store: memoryStore() });
  return { clock, env, server, kube: server.client() };
}

test("a second run is refused, and says who carries the cluster", async () => {
  const { clock, env, kube } = world();
  let end = () => {};
  const first = underCrossingLease(
    { ...env, kube },
    { identity: "anna@m1" },
    signal,
    () =>
      new Promise<void>((resolve) => {
        end = resolve;
      }),
  );
  await clock.advance(1000);
  const second = underCrossingLease({ ...env, kube }, { identity: "ben@m2" }, signal, async () => "ran");
  await expect(clock.run(second)).rejects.toMatchObject({
    name: "CrossingLeaseError",
    message: expect.stringContaining(
      "Lease kube-system/longshore-crossing (spec.holderIdentity) is renewed by anna@m1",
    ),
  });
  end();
  await clock.run(first);
  const lease = await kube.get(
    resources.leases,
    { namespace: "kube-system", name: "longshore-crossing" },
    { signal },
  );
  expect(lease?.spec?.holderIdentity).toBe("");
  expect(
    await clock.run(underCrossingLease({ ...env, kube }, { identity: "ben@m2" }, signal, async () => "ran")),
  ).toBe("ran");
});

test("that of a process that is gone lapses, and is waited for", async () => {
  const { clock, env, kube } = world();
  const spec = {
    holderIdentity: "gone@m1",
    leaseDurationSeconds: 15,
    renewTime: "2026-01-01T00:00:00.000000Z",
  };
  await kube.create(
    resources.leases,
    { metadata: { namespace: "kube-system", name: "longshore-crossing" }, spec } as never,
    { signal },
  );
  const waits: string[] = [];
  const startMs = clock.monotonicMs();
  const onWaiting = ({ subjects }: { readonly subjects: readonly { readonly why: string }[] }) =>
    waits.push(...subjects.map(({ why }) => why));
  await clock.run(
    underCrossingLease({ ...env, kube }, { identity: "ben@m2", onWaiting }, signal, async () => {}),
  );
  expect(clock.monotonicMs() - startMs).toBeLessThan(25_000);
  expect(waits).toContain("held by gone@m1, to lapse");
});

test("an account that may not write it is an error, and so is what the work throws", async () => {
  const { clock, env, server, kube } = world();
  const reader = server.client({ name: "reader", groups: ["system:masters-not"] });
  await expect(
    clock.run(underCrossingLease({ ...env, kube: reader }, { identity: "r" }, signal, async () => {})),
  ).rejects.toMatchObject({ code: 403 });
  const failing = underCrossingLease({ ...env, kube }, { identity: "a" }, signal, async () => {
    throw new Error("it went wrong");
  });
  await expect(clock.run(failing)).rejects.toThrow("it went wrong");
  expect(crossingRoles("manual").map(({ kind }) => kind)).toEqual(["ClusterRole", "Role"]);
});

test("an interruption ends the work, and then the run", async () => {
  const { clock, env, kube } = world();
  const stop = new AbortController();
  const run = underCrossingLease({ ...env, kube }, { identity: "a" }, stop.signal, (_, within) =>
    clock.sleep(60_000, within),
  );
  await clock.advance(500);
  stop.abort(new Error("Ctrl-C"));
  await expect(clock.run(run)).rejects.toThrow("Ctrl-C");
});
