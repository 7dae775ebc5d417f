import type { KubeClient, KubeObject, ObjectRef, Resource } from "@longshore/kube";
import { VirtualClock } from "@longshore/runtime";
import { expect, it } from "vitest";
import { createManualPlatform, type ManualTask } from "./manual-platform.ts";

const signal = new AbortController().signal;
const gates = { CSIMigration: true, CSIMigrationAWS: true };

function world() {
  const clock = new VirtualClock();
  const shown = {
    plugins: "",
    published: undefined as string | undefined,
    command: undefined as string[] | undefined,
  };
  const tasks: ManualTask[] = [];
  const kube = {
    get: async ({ plural }: Resource<KubeObject>, { name }: ObjectRef) => {
      if (plural === "csinodes") {
        return {
          metadata: { name, annotations: { "storage.alpha.kubernetes.io/migrated-plugins": shown.plugins } },
        };
      }
      return shown.published === undefined ? undefined : { data: { "feature-gates": shown.published } };
    },
    list: async () => ({
      items:
        shown.command === undefined
          ? []
          : [
              {
                metadata: { name: "kube-controller-manager-m1" },
                spec: { containers: [{ command: shown.command }] },
                status: { conditions: [{ type: "Ready", status: "True" }] },
              },
            ],
    }),
  } as unknown as KubeClient;
  return {
    clock,
    shown,
    tasks,
    platform: createManualPlatform({ clock, kube, onTask: (task) => tasks.push(task) }),
  };
}

/** Whether it has resolved by now. */
async function isDone(clock: VirtualClock, work: Promise<void>): Promise<boolean> {
  let done = false;
  void work.then(() => {
    done = true;
  });
  await clock.advance(10_000);
  return done;
}

it("says once what is to be done on a node, and waits until its CSINode shows it", async () => {
  const { clock, shown, tasks, platform } = world();
  const work = platform.setNodeGates("n1", gates, signal);
  expect(await isDone(clock, work)).toBe(false);
  expect(tasks).toEqual([{ nodeName: "n1", gates: "CSIMigration=true,CSIMigrationAWS=true" }]);
  shown.plugins = "kubernetes.io/aws-ebs";
  expect(await isDone(clock, work)).toBe(true);
  await platform.setNodeGates("n1", gates, signal);
  expect(tasks).toHaveLength(1);
});

it("sees the control plane by its pods, and asks for a word where it has none", async () => {
  const seen = world();
  seen.shown.command = ["kube-controller-manager"];
  const work = seen.platform.setControlPlaneGates(gates, signal);
  expect(await isDone(seen.clock, work)).toBe(false);
  expect(seen.tasks).toEqual([{ gates: "CSIMigration=true,CSIMigrationAWS=true" }]);
  seen.shown.command = ["kube-controller-manager", "--feature-gates=CSIMigration=true,CSIMigrationAWS=true"];
  expect(await isDone(seen.clock, work)).toBe(true);

  const unseen = world();
  const asked = unseen.platform.setControlPlaneGates(gates, signal);
  expect(await isDone(unseen.clock, asked)).toBe(false);
  expect(unseen.tasks[0]?.confirm).toMatchObject({ name: "longshore-control-plane", key: "feature-gates" });
  unseen.shown.published = "CSIMigration=true,CSIMigrationAWS=true";
  expect(await isDone(unseen.clock, asked)).toBe(true);
});
