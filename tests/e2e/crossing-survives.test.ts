/** A crossing survives the death of each of its parts, at the worst moment. Real processes, real kill -9. */
import { spawn } from "node:child_process";
import { resources } from "@longshore/kube";
import { agentProcess } from "@longshore/local";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { longshoreCommand, TestCluster } from "./support/test-cluster.ts";

const never = new AbortController().signal;
const node = "node-1";

describe("a crossing survives", () => {
  let test: TestCluster;
  beforeEach(async () => {
    test = await TestCluster.up();
  });
  afterEach(() => test.down());

  const nodeStatus = async () =>
    (await test.kube.get(resources.nodes, { name: node }, { signal: never }))?.status;

  /** Over and back, with the writer running after each part. */
  const thereAndBack = async () => {
    await test.cross("migrate");
    await test.writerRuns();
    await test.cross("rollback");
    await test.writerRuns();
    await test.expectNothingLost();
  };

  it("kill -9 of the node agent between attach and mount", async () => {
    await test.cross("migrate");
    await test.writerRuns();
    // Stopped before the new pod's volume is attached, the agent cannot mount it before it is killed.
    const before = (
      await test.kube.get(resources.pods, { namespace: "default", name: "writer-0" }, { signal: never })
    )?.metadata.uid;
    await test.restartWriter();
    await test.until("the new pod's volume is wanted", async () => {
      const pod = await test.kube.get(
        resources.pods,
        { namespace: "default", name: "writer-0" },
        { signal: never },
      );
      return pod !== undefined && pod.metadata.uid !== before && pod.spec?.nodeName === node;
    });
    await test.signal(agentProcess(node), "SIGSTOP");
    await test.until("the volume is attached", async () => {
      const attachments = await test.kube.list(resources.volumeAttachments, { signal: never });
      return attachments.items.some((va) => va.status?.attached === true);
    });
    await test.signal(agentProcess(node), "SIGKILL");
    await test.writerRuns();
    await test.cross("rollback");
    await test.writerRuns();
    await test.expectNothingLost();
  });

  it("kill -9 of the node agent between unmount and detach", async () => {
    await test.cluster.cloud.setKnobs("detachDisk", { delayMs: 1500 }, never);
    const crossing = test.cross("migrate");
    await test.until("the volume is unmounted and still attached", async () => {
      const status = await nodeStatus();
      const [disk] = await test.cluster.cloud.listDisks(never);
      return (status?.volumesInUse ?? []).length === 0 && disk?.attachments.length === 1;
    });
    await test.signal(agentProcess(node), "SIGKILL");
    await crossing;
    await test.cluster.cloud.setKnobs("detachDisk", {}, never);
    await test.writerRuns();
    await test.cross("rollback");
    await test.writerRuns();
    await test.expectNothingLost();
  });

  it("kill -9 of the controller manager in the middle", async () => {
    let killed: Promise<void> | undefined;
    await test.cross("migrate", (step) => {
      if (step === "volumes gone") killed = test.signal("controller-manager", "SIGKILL");
    });
    await killed;
    await test.writerRuns();
    let killedAgain: Promise<void> | undefined;
    await test.cross("rollback", (step) => {
      if (step === "drain") killedAgain = test.signal("controller-manager", "SIGKILL");
    });
    await killedAgain;
    await test.writerRuns();
    await test.expectNothingLost();
  });

  it("kill -9 of the API server in the middle", async () => {
    let killed: Promise<void> | undefined;
    const interrupted = await test
      .cross("migrate", (step) => {
        if (step === "drain") killed = test.signal("apiserver", "SIGKILL");
      })
      .then(
        () => false,
        () => true,
      );
    await killed;
    // A crossing whose API server went away may end; begun again, it goes on.
    if (interrupted)
      await test.until("the crossing is resumed", () => test.cross("migrate").then(() => true));
    await test.writerRuns();
    await test.cross("rollback");
    await test.writerRuns();
    await test.expectNothingLost();
  });

  it("kill -9 of the driver during NodeStage", async () => {
    let staging: Promise<void> | undefined;
    await test.cross("migrate", (step) => {
      // The driver answers nothing from now on, so that the first NodeStage is under way when it dies.
      if (step === "uncordon") staging = test.signal(`csi-node-${node}`, "SIGSTOP");
    });
    await staging;
    await test.until("the volume is attached", async () => {
      const attachments = await test.kube.list(resources.volumeAttachments, { signal: never });
      return attachments.items.some((va) => va.status?.attached === true);
    });
    await test.until(
      "the volume is in use",
      async () => ((await nodeStatus())?.volumesAttached ?? []).length > 0,
    );
    await test.signal(`csi-node-${node}`, "SIGKILL");
    await test.writerRuns();
    await test.cross("rollback");
    await test.writerRuns();
    await test.expectNothingLost();
  });

  it("Ctrl-C of `longshore migrate`, and running it again", async () => {
    const first = migrate(test.dir, "cordon");
    expect(await first).toBe(130);
    expect(await migrate(test.dir)).toBe(0);
    await test.writerRuns();
    await thereAndBack();
  });
});

/** Runs `longshore migrate`; with `interruptAt`, presses Ctrl-C once that step shows. Gives the exit code. */
function migrate(dir: string, interruptAt?: string): Promise<number | null> {
  const [program = "", ...args] = longshoreCommand;
  const child = spawn(program, [...args, "migrate", "--plugin", "aws-ebs", "--dir", dir], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let interrupted = false;
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (interruptAt === undefined || interrupted || !text.includes(interruptAt)) return;
    interrupted = true;
    child.kill("SIGINT");
  });
  return new Promise((resolve) => child.on("exit", resolve));
}
