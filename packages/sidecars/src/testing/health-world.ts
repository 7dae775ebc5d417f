/** A driver that reports conditions of its volumes, and volumes of it, for tests of the health monitor. */
import { type PersistentVolume, resources } from "@longshore/kube";
import { type Conditions, fakeDriver, withConditions } from "@longshore/testing/sidecars";
import { type HealthMonitorOptions, startHealthMonitor } from "../health-monitor/index.ts";
import { sidecarWorld, type World } from "./world.ts";

/** Where the driver listens. */
export const socket = "/csi/csi.sock";
/** The driver's name. */
export const driver = "ebs.csi.aws.com";

/** A driver that says how its volumes are, by one way, and a health monitor to start on it. */
export async function healthWorld(way: "list" | "get") {
  const world = await sidecarWorld();
  const conditions: Conditions = new Map();
  const calls: string[] = [];
  const serve = () =>
    world.csi.serve(socket, withConditions(fakeDriver(world.cloud), conditions, way, calls));
  world.csi.crash(socket);
  await serve();
  const start = (options: HealthMonitorOptions = {}) => startHealthMonitor(world.env(), options);
  return { ...world, conditions, calls, serve, start };
}

/** A bound volume and its claim. */
export async function addVolume({ kube, signal }: World, name: string, source: object, annotations = {}) {
  const claim = await kube.create(
    resources.persistentVolumeClaims,
    {
      metadata: { name, namespace: "default" },
      spec: {
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage: "1Gi" } },
        volumeName: `pv-${name}`,
      },
    },
    { signal },
  );
  const pv = {
    metadata: { name: `pv-${name}`, annotations },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      claimRef: { kind: "PersistentVolumeClaim", name, namespace: "default", uid: claim.metadata.uid },
      ...source,
    },
  } as PersistentVolume;
  await kube.create(resources.persistentVolumes, pv, { signal });
  const body = { status: { phase: "Bound" } };
  await kube.patch(
    resources.persistentVolumes,
    { name: `pv-${name}` },
    { type: "merge", body },
    { signal, subresource: "status" },
  );
}

/** `claim reason message`, in the order of their first occurrence. */
export async function emitted({ kube, signal }: World) {
  const { items } = await kube.list(resources.events, { signal });
  return items
    .map(
      ({ involvedObject, reason, message, type }) => `${type} ${involvedObject.name} ${reason}: ${message}`,
    )
    .sort();
}
