/** No wake-up of the resizer is lost: a claim that changes while its pass ends, a volume that comes after its claim. */
import { interceptWrites, resources } from "@longshore/kube";
import { expect, it } from "vitest";
import {
  addBoundClaim,
  ask,
  claimRef,
  resizingWorld,
  theClaim,
  theVolume,
} from "../testing/fake-resizing.ts";
import type { World } from "../testing/world.ts";
import { startResizer } from "./resizer.ts";

/** Far below the resync, in milliseconds. */
const soonMs = 20_000;
const expandCalls = ({ cloud }: World) => cloud.calls.filter((call) => call.startsWith("ControllerExpand"));

/** The client, which calls `then` once each patch of a claim has been answered, before the resizer sees the answer. */
function afterClaimPatch(world: World, then: () => Promise<void>): World["kube"] {
  return interceptWrites(world.kube, async ({ resource, verb }, signal, send) => {
    const answer = await send(signal);
    if (verb === "patch" && resource.kind === "PersistentVolumeClaim") await then();
    return answer;
  });
}

it.each([
  ["its intent is stored", 1],
  ["its pass ends", 2],
])("a claim that asks for more as %s gets that, too", async (_, patch) => {
  const world = await resizingWorld({ nodeExpansionRequired: false });
  await addBoundClaim(world);
  let patches = 0;
  const kube = afterClaimPatch(world, async () => {
    if (++patches === patch) await ask(world, { storage: "4Gi" });
  });
  const resizer = startResizer(world.env(kube));
  await world.clock.advance(1000);
  await ask(world, { storage: "3Gi" });
  await world.eventually(
    "4Gi",
    async () => (await theClaim(world)).status?.capacity?.storage === "4Gi",
    soonMs,
  );
  expect(expandCalls(world).at(-1)).toBe("ControllerExpandVolume vol-9 4Gi");
  await resizer.stop();
});

it("a volume that comes after its claim has asked wakes the claim", async () => {
  const world = await resizingWorld({ nodeExpansionRequired: false });
  await addBoundClaim(world);
  const { kube, signal } = world;
  const { apiVersion, kind, metadata, spec } = await theVolume(world);
  const ref = { name: metadata.name };
  await kube.patch(
    resources.persistentVolumes,
    ref,
    { type: "merge", body: { metadata: { finalizers: null } } },
    { signal },
  );
  await kube.delete(resources.persistentVolumes, ref, { signal });
  const resizer = startResizer(world.env());
  await world.clock.advance(1000);
  await ask(world, { storage: "3Gi" });
  await world.clock.advance(30_000);
  expect(expandCalls(world)).toEqual([]);
  await kube.create(
    resources.persistentVolumes,
    {
      ...(apiVersion === undefined ? {} : { apiVersion }),
      ...(kind === undefined ? {} : { kind }),
      metadata: { name: metadata.name },
      ...(spec === undefined ? {} : { spec }),
    },
    { signal },
  );
  await world.eventually(
    "3Gi",
    async () => (await theClaim(world)).status?.capacity?.storage === "3Gi",
    soonMs,
  );
  const claim = await kube.get(resources.persistentVolumeClaims, claimRef, { signal });
  expect(claim?.status?.conditions ?? []).toEqual([]);
  await resizer.stop();
});
