/** A driver in memory that keeps the contract of CSI, and its faults: one for each check of the conformance suite. */
export { allSecrets, type FakeWorld, fakeWorld } from "./fake-world.ts";
export { faultTable } from "./fault-table.ts";
