/**
 * A crossing survives the death of each of its parts, at the worst moment. Real processes, real
 * kill -9. The moment is made certain by stopping (SIGSTOP) what would let it pass, never by waiting.
 */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { resources } from "@longshore/kube";
import { agentProcess } from "@longshore/local";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { longshoreCommand, TestCluster } from "./support/test-cluster.ts";

const never = new AbortController().signal;
const node = "node-1";
const agent = agentProcess(node);
const driver = `csi-node-${node}`;
const driverName = "ebs.csi.aws.com";

describe("a crossing survives", () => {
  let test: TestCluster;
  beforeEach(async () => {
    test = await TestCluster.up();
  });
  afterEach(() => test.down());

  const nodeStatus = async () =>
    (await test.kube.get(resources.nodes, { name: node }, { signal: never }))?.status;
  const diskAttachments = async () =>
    (await test.cluster.cloud.listDisks(never)).flatMap((disk) => disk.attachments).length;
  /** Stops the agent where the writer's volume is attached and cannot be mounted. */
  const stopBetweenAttachAndMount = async () => {
    // Nothing is attached before the agent stands still, which it may only once the pod is bound.
    test.signal("disk-cloud", "SIGSTOP");
    await test.until("the writer is bound", async () => {
      return (await test.pod("writer-0"))?.spec?.nodeName === node;
    });
    test.signal(agent, "SIGSTOP");
    test.signal("disk-cloud", "SIGCONT");
    await test.until("the volume is attached", async () => {
      return (await diskAttachments()) === 1 && (await nodeStatus())?.volumesAttached?.length === 1;
    });
    expect(await test.mounts()).toEqual([]);
  };

  /**
   * Over and back, the writer running after each part, with something done at the beginning of some
   * steps: its first part at once, before the step goes on, the rest in parallel with the crossing.
   */
  async function overAndBack(
    actions: Partial<Record<"migrate" | "rollback", Readonly<Record<string, () => unknown>>>>,
    mayStillCall: readonly string[] = [],
  ): Promise<void> {
    let migratedAt = 0;
    for (const direction of ["migrate", "rollback"] as const) {
      if (direction === "rollback") {
        const calls = await test.inTreeCallsSince(migratedAt);
        expect(calls.filter((op) => !mayStillCall.includes(op))).toEqual([]);
      }
      const left = new Map(Object.entries(actions[direction] ?? {}));
      const done: unknown[] = [];
      const crossing = test.cross(direction, (step) => {
        const action = left.get(step);
        left.delete(step);
        if (action !== undefined) done.push(action());
      });
      await crossing;
      migratedAt = await test.lastCloudCall();
      await Promise.all(done);
      expect([...left.keys()], "steps that never began").toEqual([]);
      await test.writerRuns();
    }
    await test.expectNothingLost();
  }

  it("kill -9 of the node agent between attach and mount", async () => {
    const betweenAttachAndMount = async () => {
      await stopBetweenAttachAndMount();
      test.signal(agent, "SIGKILL");
    };
    await overAndBack({
      migrate: { uncordon: betweenAttachAndMount },
      rollback: { uncordon: betweenAttachAndMount },
    });
  });

  it("kill -9 of the node agent between unmount and detach", async () => {
    const betweenUnmountAndDetach = () => {
      // No detach happens while the controllers stand still.
      test.signal("controller-manager", "SIGSTOP");
      return test
        .until("the volume is unmounted", async () => {
          return (
            (await test.mounts()).length === 0 && ((await nodeStatus())?.volumesInUse ?? []).length === 0
          );
        })
        .then(async () => {
          expect(await diskAttachments()).toBe(1);
          test.signal(agent, "SIGKILL");
          test.signal("controller-manager", "SIGCONT");
        });
    };
    await overAndBack({
      migrate: { drain: betweenUnmountAndDetach },
      rollback: { drain: betweenUnmountAndDetach },
    });
  });

  it("kill -9 of the controller manager in the middle", async () => {
    const kill = () => test.signal("controller-manager", "SIGKILL");
    // The detaches that the killed process had begun, its successor finishes before the node changes over. It also asks
    // the provider what is attached, for controllers that keep no record.
    const mayStillCall = ["listDisks", "listInstances"];
    const actions = { migrate: { "volumes gone": kill }, rollback: { drain: kill, uncordon: kill } };
    await overAndBack(actions, mayStillCall);
  });

  it("kill -9 of the controller manager in slow detaches, while the cloud throttles the list of disks", async () => {
    const { cloud } = test.cluster;
    const changes = async () => {
      const calls = await cloud.calls(0, never);
      return calls
        .filter(({ op }) => op === "attachDisk" || op === "detachDisk")
        .map((c) => `${c.path} ${c.op}`);
    };
    const detaches = async () => (await changes()).filter((call) => call === "in-tree detachDisk").length;
    await cloud.setKnobs("detachDisk", { delayMs: 600_000 }, never);
    await cloud.setKnobs("listDisks", { failNext: 1_000_000 }, never);
    let isFlipped = false;
    const crossing = test.cross("migrate", (step) => {
      isFlipped ||= step === "flip";
    });
    await test.until("the detach is under way", async () => (await detaches()) === 1);
    // By protocol the volume has left the node's status; the disk is attached nevertheless.
    expect((await nodeStatus())?.volumesAttached ?? []).toEqual([]);
    test.signal("controller-manager", "SIGKILL");
    await test.until("the next controller manager takes it up", async () => (await detaches()) === 2);
    expect(isFlipped).toBe(false);
    await cloud.setKnobs("detachDisk", {}, never);
    test.signal("controller-manager", "SIGKILL");
    await crossing;
    await test.until("an event on the pod says what its volume waits for", async () => {
      const events = await test.kube.list(resources.events, { signal: never });
      return events.items.some(
        ({ message }) => message?.includes("is not attached to node node-1 yet") === true,
      );
    });
    expect(await changes()).toEqual(["in-tree attachDisk", ...Array(3).fill("in-tree detachDisk")]);
    await cloud.setKnobs("listDisks", {}, never);
    await test.writerRuns();
    expect((await changes()).slice(4)).toEqual(["csi attachDisk"]);
    await test.expectNothingLost();
  });

  it("kill -9 of the API server in the middle", async () => {
    const kill = () => test.signal("apiserver", "SIGKILL");
    await overAndBack({ migrate: { drain: kill }, rollback: { flip: kill } });
  });

  it("kill -9 of the driver during NodeStage", async () => {
    const duringNodeStage = async () => {
      await stopBetweenAttachAndMount();
      // The driver asks the disk cloud where the device is, and is left without an answer.
      const seq = await test.lastCloudCall();
      await test.cluster.cloud.setKnobs("describeDisk", { delayMs: 60_000 }, never);
      test.signal(agent, "SIGCONT");
      await test.until("the volume is being staged", async () => {
        const calls = await test.cluster.cloud.calls(seq, never);
        return calls.some((call) => call.op === "describeDisk" && call.component === driverName);
      });
      expect(await test.mounts()).toEqual([]);
      test.signal(driver, "SIGKILL");
      await test.cluster.cloud.setKnobs("describeDisk", {}, never);
    };
    await overAndBack({ migrate: { uncordon: duringNodeStage } });
  });

  it("Ctrl-C of `longshore migrate`, and running it again", async () => {
    for (const verb of ["migrate", "rollback"] as const) {
      const stopped = await longshore(verb, test.dir, "cordon");
      expect(stopped).toMatchObject({ code: 130, out: "" });
      expect(journal(test.dir)).toMatchObject({ direction: verb, nodesDone: [] });
      expect(journal(test.dir)).not.toHaveProperty("finishedAt");
      const resumed = await longshore(verb, test.dir);
      expect(resumed.err).not.toContain("longshore:");
      expect(resumed).toMatchObject({ code: 0, out: expect.stringContaining("(resumed)") });
      expect(journal(test.dir)).toMatchObject({ direction: verb, nodesDone: [node] });
      await test.writerRuns();
    }
    await test.expectNothingLost();
  });
});

function journal(dir: string): object {
  const file = join(dir, "crossing.json");
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as object) : {};
}

/** Runs `longshore migrate` or `rollback`; with `interruptAfter`, presses Ctrl-C once that step is done. */
function longshore(
  verb: string,
  dir: string,
  interruptAfter?: string,
): Promise<{ code: number | null; out: string; err: string }> {
  const [program = "", ...args] = longshoreCommand;
  const child = spawn(program, [...args, verb, "--plugin", "aws-ebs", "--dir", dir], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  let err = "";
  let interrupted = false;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    err += text;
    if (interruptAfter === undefined || interrupted || !err.includes(`: ${interruptAfter} `)) return;
    interrupted = true;
    child.kill("SIGINT");
  });
  return new Promise((resolve) => child.on("close", (code) => resolve({ code, out, err })));
}
