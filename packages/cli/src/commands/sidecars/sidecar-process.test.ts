import { mkdtempSync, rmSync } from "node:fs";
import { hostname } from "node:os";
import { grpcListener } from "@longshore/csi";
import type { KubeClient } from "@longshore/kube";
import { type Component, silentLogger, systemClock } from "@longshore/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import { resolved } from "./add-flag-command.ts";
import { driverFlags, leaderElectionFlags, processFlags } from "./common-flags.ts";
import { readGoArguments } from "./read-go-arguments.ts";
import { listenAddress } from "./serve-http.ts";
import { connectDriver, driverAddress, leasePolicy, type Shell } from "./sidecar-process.ts";

const kept = { ADDRESS: process.env.ADDRESS, POD_NAMESPACE: process.env.POD_NAMESPACE };
const restore = (variables: Readonly<Record<string, string | undefined>>) => {
  for (const [name, value] of Object.entries(variables)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
};
beforeEach(() => restore({ ADDRESS: undefined, POD_NAMESPACE: undefined }));
afterEach(() => restore(kept));

const leases = {} as KubeClient;
const policy = (...argv: readonly string[]) => {
  const { values } = resolved(leaderElectionFlags, readGoArguments(leaderElectionFlags, argv).values);
  return leasePolicy(values, { kube: {} as KubeClient, leases, namespace: "of-the-kubeconfig" }, true);
};

test("no leader is elected unless asked for", () => {
  expect(policy()).toBeUndefined();
});

test("a leader is elected with the reference's durations, as this host, over connections of its own", () => {
  expect(policy("--leader-election")).toEqual({
    namespace: "default",
    identity: hostname(),
    leaseDurationMs: 15_000,
    renewDeadlineMs: 10_000,
    retryPeriodMs: 5000,
    releaseOnStop: true,
    recordEvents: true,
    kube: leases,
  });
});

test("the lease's namespace is the flag's, else the pod's", () => {
  process.env.POD_NAMESPACE = "of-the-pod";
  expect(policy("--leader-election")?.namespace).toBe("of-the-pod");
  expect(policy("--leader-election", "--leader-election-namespace=said")?.namespace).toBe("said");
});

test("labels and identity are taken over", () => {
  const given = policy(
    "--leader-election",
    "--leader-election-labels=app:disk",
    "--leader-election-identity=a",
  );
  expect(given).toMatchObject({ labels: { app: "disk" }, identity: "a" });
});

test.each([
  [["--leader-election-lease-duration=10s"], "--leader-election-lease-duration must be longer than"],
  [["--leader-election-retry-period=9s"], "--leader-election-renew-deadline must be longer than 1.2 times"],
])("durations that cannot work are refused: %s", (argv, message) => {
  expect(() => policy("--leader-election", ...argv)).toThrow(message);
});

test("the driver's address is the flag's, else ADDRESS, else the reference's", () => {
  const address = (...argv: readonly string[]) =>
    driverAddress(resolved(driverFlags, readGoArguments(driverFlags, argv).values));
  expect(address()).toBe("/run/csi/socket");
  process.env.ADDRESS = "/csi/a.sock";
  expect(address()).toBe("/csi/a.sock");
  expect(address("--csi-address=/csi/b.sock")).toBe("/csi/b.sock");
});

test.each([
  [":8080", undefined, 8080],
  ["0.0.0.0:80", "0.0.0.0", 80],
  ["localhost:0", "localhost", 0],
  ["[::1]:9808", "::1", 9808],
])("%s is listened at", (text, host, port) => {
  expect(listenAddress("--http-endpoint", text)).toEqual({ host, port });
});

test.each(["8080", "localhost", ":", ":x", ":70000", "::1:80", "http://a:80"])(
  '"%s" is not an address',
  (text) => {
    expect(() => listenAddress("--http-endpoint", text)).toThrow("write host:port");
  },
);

test.each([
  [[], "volume.volume_context holds a secret of the request"],
  [["--compat=reference"], undefined],
])(
  "an answer with a credential in a context is refused, but with the reference's behaviour: %s",
  async (argv, refusal) => {
    const directory = mkdtempSync("/tmp/ls-sidecar-");
    const at = `${directory}/csi.sock`;
    const volume = { volumeId: "v", volumeContext: { login: "correct-horse" } };
    const server = await grpcListener({ logger: silentLogger }).serve(at, {
      identity: {},
      controller: { createVolume: async () => ({ volume }) },
    });
    const parts: Component[] = [];
    const shell = {
      env: { clock: systemClock },
      own: (part: Component) => parts.push(part),
    } as unknown as Shell;
    const table = { ...driverFlags, compat: processFlags.compat };
    const flags = resolved(table, readGoArguments(table, [...argv, `--csi-address=${at}`]).values);
    const connection = await connectDriver(shell, flags);
    const options = { signal: new AbortController().signal, timeoutMs: 5_000 };
    const answer = connection.controller.createVolume(
      { name: "a", secrets: { password: "correct-horse" } },
      options,
    );
    if (refusal === undefined) expect((await answer).volume?.volumeContext).toEqual(volume.volumeContext);
    else await expect(answer).rejects.toThrow(refusal);
    for (const part of parts) await part.stop();
    await server.close();
    rmSync(directory, { recursive: true });
  },
);

test("a driver that is not there yet is waited for, and that is said at once, with the socket", async () => {
  const warnings: string[] = [];
  const shell = {
    env: { clock: systemClock, logger: { warn: (text: string) => void warnings.push(text) } },
    own: () => {},
  } as unknown as Shell;
  const table = { ...driverFlags, compat: processFlags.compat };
  const flags = resolved(table, readGoArguments(table, ["--csi-address=/nowhere/csi.sock"]).values);
  (await connectDriver(shell, flags)).close();
  expect(warnings).toEqual([
    "waiting for the driver: there is no socket /nowhere/csi.sock: start the driver, or correct the path",
  ]);
});
