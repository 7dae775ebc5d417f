/**
 * `cluster up --node-decides-migration`: processes whose attach/detach controller asks each node, while its own gate stays off
 * (docs/behaviour/migration-controllers.md B2). Needs root.
 */
import { resources } from "@longshore/kube";
import { claimVolume, mayMount, volumePod } from "@longshore/local";
import { migratedPluginsAnnotation } from "@longshore/storage";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DetachedCluster } from "./support/detached-cluster.ts";

const never = new AbortController().signal;
const nodeName = "node-1";
const gate = "CSIMigrationAWS";
if (!mayMount()) console.warn("this process may not mount: the node-only mode is not tried");

describe.skipIf(!mayMount())("a controller that goes by what each node says", () => {
  const cluster = new DetachedCluster(["--nodes", "1", "--node-decides-migration"]);
  beforeAll(() => cluster.start());
  afterAll(() => cluster.down());

  /** Attaches that the provider was asked for while a pod wrote to the volume, by path; what the pod has read. */
  async function write(
    name: string,
  ): Promise<{ readonly paths: ReadonlySet<string>; readonly read: string }> {
    const before = (await cluster.cloud.calls(0, never)).at(-1)?.seq ?? 0;
    const script = `echo ${name} >> "$LONGSHORE_MOUNT_DATA/f" && cat "$LONGSHORE_MOUNT_DATA/f"`;
    const command = ["/bin/sh", "-c", script];
    await cluster.kube.create(resources.pods, volumePod({ name, command, volume: claimVolume("c") }), {
      signal: never,
    });
    await cluster.until(`${name} has written`, async () => {
      return (await cluster.pod(name))?.status?.phase === "Succeeded";
    });
    const read = await cluster.log(name);
    await cluster.kube.delete(resources.pods, { namespace: "default", name }, { signal: never });
    await cluster.until(`nothing of ${name} is attached`, async () => {
      const { items } = await cluster.kube.list(resources.volumeAttachments, { signal: never });
      const disks = await cluster.cloud.listDisks(never);
      return items.length === 0 && disks.every(({ attachments }) => attachments.length === 0);
    });
    const calls = await cluster.cloud.calls(before, never);
    return { paths: new Set(calls.flatMap(({ op, path }) => (op === "attachDisk" ? [path] : []))), read };
  }

  const flip = async (isOn: boolean) => {
    await cluster.platform.setNodeGates(nodeName, { [gate]: isOn }, never);
    await cluster.until("the CSINode says so", async () => {
      const csiNode = await cluster.kube.get(resources.csiNodes, { name: nodeName }, { signal: never });
      const listed = csiNode?.metadata.annotations?.[migratedPluginsAnnotation] ?? "";
      return listed.includes("kubernetes.io/aws-ebs") === isOn;
    });
  };

  test("attaches by CSI on a node that has migrated, and in-tree once it has not, its own gate off throughout", async () => {
    const spec = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "64Mi" } } };
    const claim = { metadata: { namespace: "default", name: "c" }, spec };
    await cluster.kube.create(resources.persistentVolumeClaims, claim, { signal: never });
    expect(await write("a")).toEqual({ paths: new Set(["in-tree"]), read: "a\n" });
    await flip(true);
    expect(await write("b")).toEqual({ paths: new Set(["csi"]), read: "a\nb\n" });
    expect((await cluster.platform.controlPlaneGates(never))?.[gate]).toBe(false);
    await flip(false);
    expect(await write("c")).toEqual({ paths: new Set(["in-tree"]), read: "a\nb\nc\n" });
  });
});
