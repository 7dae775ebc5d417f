/** `longshore run reference-driver`: the reference CSI driver alone, for authors and for `driver check`. */
import { hostname } from "node:os";
import type { FaultName, StandaloneDriverOptions } from "@longshore/reference-driver";
import { type Command, Option } from "commander";
import { absolute } from "../environment.ts";
import { UsageError } from "../exit.ts";
import { untilInterrupted } from "./until-interrupted.ts";

const help = `
It needs no cluster: disks are sparse files in the state directory. As root on Linux it makes loop devices with ext4
or xfs on them (--mode loop); elsewhere directories and links stand in for both (--mode directory).
When it is ready it says so in one line on standard output: serving at unix:///PATH. It may be killed at any time;
started again with the same state directory, it goes on. Stopping it leaves volumes and mounts as they are.

With --services controller and --services node, two processes with the same state directory are one driver.
--fault makes it break a rule, to see whether a check notices; --fault list names all rules.

Examples:
  longshore run reference-driver --endpoint unix:///tmp/d/csi.sock --state-dir /tmp/d/state
  longshore driver check --endpoint unix:///tmp/d/csi.sock
  longshore run reference-driver --endpoint unix:///tmp/d/csi.sock --state-dir /tmp/d/state --fault list-repeats-entries`;

interface ReferenceDriverFlags {
  readonly endpoint?: string;
  readonly stateDir?: string;
  readonly name: string;
  readonly nodeId?: string;
  readonly topology?: readonly string[];
  readonly services: StandaloneDriverOptions["services"];
  readonly mode?: "loop" | "directory";
  readonly fsType?: "ext4" | "xfs";
  readonly maxVolumes: string;
  readonly capacity?: string;
  readonly ephemeral?: true;
  readonly fault?: readonly string[];
}

const collect = (value: string, before: readonly string[] = []) => [...before, value];

/** Adds the verb below `run`. */
export function registerReferenceDriver(run: Command): void {
  run
    .command("reference-driver")
    .description("run the reference CSI driver alone, without a cluster, until Ctrl-C or SIGTERM")
    .option("--endpoint <endpoint>", "where to listen: unix:///path/to/csi.sock")
    .option("--state-dir <dir>", "keep volumes, snapshots and everything about them here")
    .option("--name <name>", "name of the driver", "reference.csi.longshore.dev")
    .option("--node-id <id>", "id of this node (default: the host's name)")
    .option(
      "--topology <key=value>",
      "where this node is; repeated with the same key, further places that volumes can be made for",
      collect,
    )
    .addOption(
      new Option("--services <services>", "which services to serve")
        .choices(["all", "controller", "node"])
        .default("all"),
    )
    .addOption(
      new Option(
        "--mode <mode>",
        "how volumes are made (default: loop where this process may mount)",
      ).choices(["loop", "directory"]),
    )
    .addOption(
      new Option(
        "--fs-type <type>",
        "file system of volumes for which none is asked (default: ext4; xfs where this process may not grow a mounted ext4)",
      ).choices(["ext4", "xfs"]),
    )
    .option("--max-volumes <number>", "how many volumes can be published to this node", "39")
    .option("--capacity <size>", "room for volumes in each place, e.g. 100Gi (default: no limit)")
    .option(
      "--ephemeral",
      "make volumes on this node for pods that name the driver inline (CSIDriver: Ephemeral in volumeLifecycleModes, podInfoOnMount)",
    )
    .option("--fault <name>", "break this rule of the contract; may be repeated; list: show them", collect)
    .addHelpText("after", help)
    .action(async (flags: ReferenceDriverFlags) => {
      const driver = await import("@longshore/reference-driver");
      if (flags.fault?.includes("list") === true) {
        for (const name of driver.faultNames) {
          process.stdout.write(`${name}\t${driver.faultDescriptions[name]}\n`);
        }
        return;
      }
      const unknown = flags.fault?.find((name) => !driver.isFaultName(name));
      if (unknown !== undefined) {
        throw new UsageError(`--fault: there is no fault ${unknown}: "--fault list" names them`);
      }
      const options = await optionsOf(flags);
      const { grpcListener } = await import("@longshore/csi");
      const local = await import("@longshore/local");
      await untilInterrupted(async () => {
        const env = local.processEnv("reference-driver");
        const form = flags.mode === undefined ? local.mayMount() : flags.mode === "loop";
        const host = local.processHost(form ? "kernel" : "unprivileged");
        const started = await driver.startStandaloneDriver(
          { ...env, host, listener: grpcListener(env) },
          { ...options, defaultFsType: flags.fsType ?? (local.mayGrowMounted() ? "ext4" : "xfs") },
        );
        process.stdout.write(`serving at unix://${options.endpoint}\n`);
        return { ended: new Promise<string>(() => {}), stop: () => started.stop() };
      });
    });
}

/** @throws UsageError */
async function optionsOf(flags: ReferenceDriverFlags): Promise<StandaloneDriverOptions> {
  const { endpoint, stateDir, name, services, nodeId = hostname() } = flags;
  if (endpoint === undefined) throw new UsageError("--endpoint is required: unix:///path/to/csi.sock");
  if (stateDir === undefined) throw new UsageError("--state-dir is required");
  if (!/^[A-Za-z]([A-Za-z0-9.-]{0,61}[A-Za-z])?$/.test(name)) {
    throw new UsageError(`--name: "${name}" is not the name of a driver: letters, digits, dots and hyphens`);
  }
  if (nodeId === "" || Buffer.byteLength(nodeId) > 256) {
    throw new UsageError("--node-id: a node id has 1 to 256 bytes");
  }
  const maxVolumes = Number(flags.maxVolumes);
  if (!Number.isInteger(maxVolumes) || maxVolumes < 1) {
    throw new UsageError(`--max-volumes: "${flags.maxVolumes}" is not a number of volumes`);
  }
  return {
    endpoint: absolute(endpoint.replace(/^unix:(\/\/)?/, "")),
    stateDir: absolute(stateDir),
    driverName: name,
    nodeId,
    services,
    maxVolumes,
    ...topologyOf(flags.topology ?? []),
    ...(flags.capacity === undefined ? {} : { capacityBytes: await sizeOf(flags.capacity) }),
    ephemeral: flags.ephemeral === true,
    faults: (flags.fault ?? []) as readonly FaultName[],
  };
}

function topologyOf(given: readonly string[]): {
  readonly topologyKey?: string;
  readonly zones?: readonly string[];
} {
  if (given.length === 0) return {};
  const pairs = given.map((text) => {
    const [key = "", zone = "", ...rest] = text.split("=");
    if (key === "" || !/^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/.test(zone) || rest.length > 0) {
      throw new UsageError(`--topology: "${text}" is not key=value, e.g. topology.example.com/zone=a`);
    }
    return { key, zone };
  });
  const topologyKey = pairs[0]?.key ?? "";
  if (pairs.some(({ key }) => key !== topologyKey)) {
    throw new UsageError("--topology: the driver has one topology key; repeat it with other values only");
  }
  return { topologyKey, zones: [...new Set(pairs.map(({ zone }) => zone))] };
}

async function sizeOf(text: string): Promise<bigint> {
  const { parseQuantity } = await import("@longshore/kube");
  try {
    const bytes = BigInt(parseQuantity(text).toBytes());
    if (bytes > 0n) return bytes;
  } catch {
    // Said below, in the words of the flag.
  }
  throw new UsageError(`--capacity: "${text}" is not a size, e.g. 100Gi`);
}
