import { expect, it } from "vitest";
import { type ClaimsView, ClaimWatch, type DeletedClaim } from "./claim-watch.ts";

const claim = { metadata: { name: "data", namespace: "default", uid: "c1", resourceVersion: "1" } };
const lost = { ...claim, status: { phase: "Lost" } };
const volume = { metadata: { name: "pv", uid: "v1", resourceVersion: "1" } };
const pod = { metadata: { name: "writer-0", namespace: "default", uid: "p1", resourceVersion: "1" } };
const deleted = {
  claim,
  volume,
  disk: "disk-1",
  users: new Set(["p1"]),
  writers: ["writer-0"],
  isRetained: false,
} as unknown as DeletedClaim;
const whole = { claims: [claim], volumes: [volume], pods: [pod], disks: new Set(["disk-1"]) };

function broken(one: DeletedClaim, ...views: readonly Partial<Record<keyof ClaimsView, unknown>>[]) {
  const breaks: string[] = [];
  const gone: DeletedClaim[] = [];
  const watch = new ClaimWatch(
    (each) => gone.push(each),
    (what) => breaks.push(what),
  );
  watch.deletes(one);
  for (const view of views) watch.check({ ...whole, ...view } as unknown as ClaimsView);
  return { breaks, gone: gone.length, isIdle: watch.isIdle };
}

it("keeps a claim until its pods are gone, and its volume and disk until the claim is (contract.md C3)", () => {
  const inOrder = [
    {},
    { pods: [] },
    { pods: [], claims: [] },
    { pods: [], claims: [], volumes: [], disks: new Set() },
  ];
  expect(broken(deleted, ...inOrder)).toEqual({ breaks: [], gone: 1, isIdle: true });
  expect(broken(deleted, { claims: [] }).breaks).toEqual(["claim data went while pod writer-0 used it"]);
  expect(broken(deleted, { volumes: [] }).breaks).toEqual(["volume pv went before its claim data"]);
  expect(broken(deleted, { claims: [lost] }).breaks).toEqual(["claim data is Lost, and volume pv is there"]);
  expect(broken(deleted, { disks: new Set() }).breaks).toEqual([
    "disk-1 was deleted before claim data was gone",
  ]);
});

it("keeps the disk of a volume with the policy Retain after all of them (contract.md C3)", () => {
  const retained = { ...deleted, isRetained: true };
  const gone = { pods: [], claims: [], volumes: [] };
  expect(broken(retained, gone)).toEqual({ breaks: [], gone: 1, isIdle: false });
  expect(broken(retained, { ...gone, disks: new Set() }).breaks).toEqual([
    "disk-1 was deleted, whose volume had the policy Retain",
  ]);
});
