/**
 * One node of the real cluster, as its own user (`system:node:NAME`, so that Node authorisation and
 * NodeRestriction have their say): our node agent, and on demand the reference driver with its
 * registrar, all on real sockets in a root directory of its own.
 */
import { readFile, writeFile } from "node:fs/promises";
import { type CsiListener, grpcConnector, grpcListener } from "@longshore/csi";
import { type AccessLog, watchedClient } from "@longshore/testing/deployment";
import {
  type EndingComponent,
  startCsiDriverOnNode,
} from "../../../packages/local/src/components/csi-driver.ts";
import { inTreePluginsNamed } from "../../../packages/local/src/components/in-tree-plugins.ts";
import { startNodeAgent } from "../../../packages/local/src/components/node-agent.ts";
import { noProbeNetwork } from "../../../packages/local/src/containers/probe-network.ts";
import {
  createProgramPodRuntime,
  type Program,
} from "../../../packages/local/src/containers/program-pod-runtime.ts";
import { connectAs, realEnv } from "./clients.ts";
import type { ControlPlane, TestUser } from "./control-plane.ts";
import { type Machine, type Provider, region } from "./provider.ts";

/** The user that a node's agent is; to be named in the control plane's options. */
export function nodeUser(nodeName: string): TestUser {
  return { name: `system:node:${nodeName}`, groups: ["system:nodes"] };
}

/** What a node runs with. */
export interface TestNodeOptions {
  readonly kubernetes: ControlPlane;
  readonly provider: Provider;
  readonly machine: Machine;
  readonly driverName: string;
  /** What containers can run in addition to {@link appenderProgram}, by name. */
  readonly programs?: Readonly<Record<string, Program>>;
}

/** A node. */
export interface TestNode {
  readonly rootDir: string;
  /** Where the output of containers goes. */
  readonly logDir: string;
  readonly registrationSocket: string;
  /** What kubelets reported to the registrar, in order; true: the driver is registered. */
  readonly registrations: readonly boolean[];
  /** What the agent asked the API server for, and what of it was refused. */
  readonly access: AccessLog;
  /** Starts the agent, or starts it again with other gates. */
  startAgent(gates: Readonly<Record<string, boolean>>): Promise<void>;
  stopAgent(): Promise<void>;
  startDriver(): Promise<EndingComponent>;
  stopDriver(): Promise<void>;
  /** Ends everything, pods too. */
  stop(): Promise<void>;
}

/** Makes a node on which nothing runs yet. */
export async function createTestNode(options: TestNodeOptions): Promise<TestNode> {
  const { kubernetes, provider, machine, driverName } = options;
  const { nodeName, instanceId, zone } = machine;
  const rootDir = `${provider.directory}/${nodeName}`;
  const logDir = `${rootDir}/logs`;
  const kube = await connectAs(kubernetes, nodeUser(nodeName).name);
  const runtime = createProgramPodRuntime(realEnv.clock, {
    [appenderProgram]: appender,
    ...options.programs,
  });
  const registrations: boolean[] = [];
  const access: AccessLog = { asked: new Set(), refused: [] };
  const env = {
    ...realEnv,
    kube: watchedClient(kube, access),
    host: provider.host,
    connector: grpcConnector(realEnv),
    listener: notingRegistrations(grpcListener(realEnv), registrations),
    runtime,
    network: noProbeNetwork,
    cloudFor: provider.cloud.forCaller.bind(provider.cloud),
  };
  let agent: ReturnType<typeof startNodeAgent> | undefined;
  let driver: EndingComponent | undefined;
  const stopAgent = async () => {
    await agent?.stop();
    agent = undefined;
  };
  const stopDriver = async () => {
    await driver?.stop();
    driver = undefined;
  };
  return {
    rootDir,
    logDir,
    registrationSocket: `${rootDir}/plugins_registry/${driverName}-reg.sock`,
    async startAgent(gates) {
      await stopAgent();
      agent = startNodeAgent(env, {
        nodeName,
        instanceId,
        zone,
        region,
        rootDir,
        logDir,
        gates,
        inTreePlugins: inTreePluginsNamed(["aws-ebs"]),
      });
    },
    registrations,
    access,
    stopAgent,
    async startDriver() {
      driver = await startCsiDriverOnNode(env, { driverName, nodeName, rootDir });
      return driver;
    },
    stopDriver,
    async stop() {
      runtime.losePower();
      await stopAgent();
      await stopDriver();
      await kube.close();
    },
  };
}

function notingRegistrations(listener: CsiListener, registrations: boolean[]): CsiListener {
  return {
    serve: (endpoint, services) => listener.serve(endpoint, services),
    serveRegistration: (socketPath, handlers) =>
      listener.serveRegistration(socketPath, {
        getInfo: () => handlers.getInfo(),
        async notifyRegistrationStatus(status) {
          await handlers.notifyRegistrationStatus(status);
          registrations.push(status.pluginRegistered);
        },
      }),
  };
}

/** The command of a container that adds a line to the file `lines` on its volume `data`, and runs on. */
export const appenderProgram = "appender";

const appender: Program = async ({ sandbox, env, signal: stopped }) => {
  const path = `${env.LONGSHORE_MOUNT_DATA}/lines`;
  const before = await readFile(path, "utf8").catch(() => "");
  await writeFile(path, `${before}${sandbox.podName}\n`);
  await new Promise((resolve) => stopped.addEventListener("abort", resolve, { once: true }));
  return 0;
};
