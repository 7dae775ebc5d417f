/** What programs load before they are ready: each module is a part of their start, needed or not. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  grpcListener,
  ControllerServiceCapability_RPC_Type as Rpc,
  PluginCapability_Service_Type as Service,
} from "../../packages/csi/src/index.ts";
import { silentLogger } from "../../packages/runtime/src/index.ts";
import { longshoreCommand } from "./support/test-cluster.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "start-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

/** The modules that the program loads until it says what it is to say, as `kube/dist/index.js`, and packages of others as `pino`. */
async function loadedUntil(said: string, ...args: readonly string[]): Promise<readonly string[]> {
  const list = join(directory, "modules");
  const inModule = (text: string) => `data:text/javascript,${encodeURIComponent(text)}`;
  const hooks = inModule(`
    import { appendFileSync } from "node:fs";
    export function load(url, context, next) {
      appendFileSync(${JSON.stringify(list)}, url + "\\n");
      return next(url, context);
    }`);
  const register = inModule(`
    import { register } from "node:module";
    register(${JSON.stringify(hooks)});`);
  const [program = "", ...rest] = longshoreCommand;
  const child = spawn(program, ["--import", register, ...rest, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(child, "exit");
  let all = "";
  const heard = new Promise<void>((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface(stream).on("line", (line) => {
        all += `${line}\n`;
        if (line.includes(said)) resolve();
      });
    }
  });
  try {
    await Promise.race([heard, ended]);
    expect(all).toContain(said);
    const urls = readFileSync(list, "utf8").trim().split("\n");
    return urls.map((url) => url.replace(/^.*\/(?:packages|node_modules)\//, ""));
  } finally {
    child.kill("SIGTERM");
    await ended;
  }
}

test("an API server is ready without the clients, caches and hosts of others, and without what some requests need", async () => {
  const loaded = await loadedUntil("serving at", "run", "apiserver", "--data-dir", join(directory, "data"));
  expect(loaded).toContain("apiserver/dist/run-api-server.js");
  expect(loaded).toContain("kube/dist/basics.js");
  const needless =
    /^(kube\/dist\/(index|http|informer|queue|config|leader-election|events)|runtime\/dist\/(index|.*host|simulated)|(csi|conformance|sidecars|deployment|storage|volumes|local|reference-driver|migration)\/|apiserver\/dist\/(http\/openapi|openapi\/documents)|js-yaml|re2js|@marcbachmann|undici)/;
  expect(loaded.filter((module) => needless.test(module))).toEqual([]);
});

test("sidecars know their driver and ask a server without the conformance suite, deployments and the verbs beside theirs", async () => {
  const socket = join(directory, "csi.sock");
  const driver = await grpcListener({ logger: silentLogger }).serve(socket, {
    identity: {
      getPluginInfo: async () => ({ name: "start.example.com", vendorVersion: "1" }),
      getPluginCapabilities: async () => ({
        capabilities: [{ type: { case: "service", value: { type: Service.CONTROLLER_SERVICE } } }],
      }),
      probe: async () => ({}),
    },
    controller: {
      controllerGetCapabilities: async () => ({
        capabilities: [{ type: { case: "rpc", value: { type: Rpc.PUBLISH_UNPUBLISH_VOLUME } } }],
      }),
    },
  });
  try {
    const args = ["run", "sidecars", "--master", "http://127.0.0.1:1", "--csi-address", socket];
    const loaded = await loadedUntil("list and watch of", ...args);
    expect(loaded).toContain("sidecars/dist/together/sidecars.js");
    const needless =
      /^(csi\/dist\/transport\.js|sidecars\/dist\/snapshot-controller|cli\/dist\/commands\/sidecars\/(register|.*-registrar|liveness-probe|snapshot-controller)|(apiserver|conformance|volumes|deployment|local|reference-driver|migration)\/)/;
    expect(loaded.filter((module) => needless.test(module))).toEqual([]);
  } finally {
    await driver.close();
  }
});
