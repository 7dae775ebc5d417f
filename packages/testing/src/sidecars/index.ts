/** A driver over disks in memory, whose calls end as the test asks, with its snapshots, sources, room and conditions. */
export { type Conditions, withConditions } from "./fake-conditions.ts";
export { FakeCloud, type FakeDriverOptions, fakeDriver } from "./fake-driver.ts";
export { FakeProvisioning } from "./fake-provisioning.ts";
export { FakeSnapshots, type FakeSnapshotsOptions, snapshotDriver } from "./fake-snapshots.ts";
