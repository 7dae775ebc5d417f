import type { HostError } from "@longshore/runtime";
import { VirtualClock } from "@longshore/runtime";
import { expect, test } from "vitest";
import { ConfigError, type ConfigHost } from "./cluster-config.ts";
import { inClusterConfig } from "./in-cluster-config.ts";
import { loadKubeconfig } from "./kubeconfig.ts";

const signal = new AbortController().signal;
const pem = (what: string) => `-----BEGIN ${what}-----\nAAAA\n-----END ${what}-----\n`;
const base64 = (text: string) => Buffer.from(text).toString("base64");

/** A machine of a few files, whose programs answer with `run`. */
function machine(files: Record<string, string>, run?: ConfigHost["runProgram"]): ConfigHost {
  return {
    readFile: async (path) => files[path],
    runProgram: run ?? (async () => Promise.reject(new Error("no programs here") as HostError)),
  };
}

const kubeconfig = (user: string, cluster = "") => `
apiVersion: v1
kind: Config
current-context: main
contexts:
- name: main
  context: { cluster: one, user: me, namespace: team }
- name: broken
  context: { cluster: two, user: me }
clusters:
- name: one
  cluster:
    server: https://10.0.0.1:6443
${cluster.replace(/^/gm, "    ")}
users:
- name: me
  user:
${user.replace(/^/gm, "    ")}
`;

const load = (text: string, host = machine({}), context?: string) =>
  loadKubeconfig(host, {
    path: "/etc/cluster/config",
    text,
    environment: { PATH: "/bin" },
    ...(context === undefined ? {} : { context }),
  });

test("inline data: authority, certificate, key", async () => {
  const config = await load(
    kubeconfig(
      `client-certificate-data: ${base64(pem("CERTIFICATE"))}\nclient-key-data: ${base64(pem("PRIVATE KEY"))}`,
      `certificate-authority-data: ${base64(pem("CERTIFICATE"))}\ntls-server-name: api.example`,
    ),
  );
  expect(config).toMatchObject({
    server: "https://10.0.0.1:6443",
    ca: pem("CERTIFICATE"),
    tlsServerName: "api.example",
    namespace: "team",
  });
  expect(await config.credentials.current(new VirtualClock(), signal)).toEqual({
    certificate: { cert: pem("CERTIFICATE"), key: pem("PRIVATE KEY") },
  });
});

test("files, relative to the kubeconfig; a token file is read again as it rotates", async () => {
  const files: Record<string, string> = {
    "/etc/cluster/pki/ca.crt": pem("CERTIFICATE"),
    "/run/token": "first\n",
  };
  const config = await load(
    kubeconfig("tokenFile: /run/token", "certificate-authority: pki/ca.crt"),
    machine(files),
  );
  const clock = new VirtualClock();
  expect(config.ca).toBe(pem("CERTIFICATE"));
  expect(await config.credentials.current(clock, signal)).toEqual({ authorization: "Bearer first" });
  files["/run/token"] = "second";
  expect(await config.credentials.current(clock, signal)).toEqual({ authorization: "Bearer first" });
  await clock.advance(60_000);
  expect(await config.credentials.current(clock, signal)).toEqual({ authorization: "Bearer second" });
  files["/run/token"] = "third";
  config.credentials.refused();
  expect(await config.credentials.current(clock, signal)).toEqual({ authorization: "Bearer third" });
});

test("a program gives the credential until it expires or is refused", async () => {
  const clock = new VirtualClock();
  const runs: unknown[] = [];
  const host = machine({}, async (program, { args, env }) => {
    runs.push([
      program,
      args,
      env?.REGION,
      env?.PATH,
      JSON.parse(env?.KUBERNETES_EXEC_INFO ?? "").apiVersion,
    ]);
    const expirationTimestamp = new Date(clock.now().getTime() + 600_000).toISOString();
    const stdout = JSON.stringify({ status: { token: `token-${runs.length}`, expirationTimestamp } });
    return { code: 0, stdout, stderr: "" };
  });
  const config = await load(
    kubeconfig(
      "exec:\n  apiVersion: client.authentication.k8s.io/v1\n  command: bin/get-token\n  args: [--cluster, one]\n" +
        "  env: [{ name: REGION, value: eu }]\n  interactiveMode: IfAvailable",
    ),
    host,
  );
  const current = async () => (await config.credentials.current(clock, signal)).authorization;
  expect([await current(), await current()]).toEqual(["Bearer token-1", "Bearer token-1"]);
  await clock.advance(600_000);
  expect(await current()).toBe("Bearer token-2");
  config.credentials.refused();
  expect(await current()).toBe("Bearer token-3");
  expect(runs[0]).toEqual([
    "/etc/cluster/bin/get-token",
    ["--cluster", "one"],
    "eu",
    "/bin",
    "client.authentication.k8s.io/v1",
  ]);
});

test("calls that wait for a program share one run, and one that leaves does not end it", async () => {
  let finish: (() => void) | undefined;
  let runs = 0;
  const host = machine({}, async () => {
    runs++;
    await new Promise<void>((resolve) => {
      finish = resolve;
    });
    return { code: 0, stdout: '{"status":{"token":"t"}}', stderr: "" };
  });
  const { credentials } = await load(
    kubeconfig("exec: { apiVersion: client.authentication.k8s.io/v1, command: get-token }"),
    host,
  );
  const clock = new VirtualClock();
  const leaving = new AbortController();
  const first = credentials.current(clock, leaving.signal);
  const second = credentials.current(clock, signal);
  leaving.abort(new Error("enough"));
  await expect(first).rejects.toThrow("enough");
  finish?.();
  expect(await second).toEqual({ authorization: "Bearer t" });
  expect(runs).toBe(1);
});

test("a token file that is missing for a moment leaves the old token", async () => {
  const files: Record<string, string> = { "/run/token": "first" };
  const { credentials } = await load(kubeconfig("tokenFile: /run/token"), machine(files));
  const clock = new VirtualClock();
  await credentials.current(clock, signal);
  delete files["/run/token"];
  await clock.advance(60_000);
  expect(await credentials.current(clock, signal)).toEqual({ authorization: "Bearer first" });
});

test("what a program prints is in no error", async () => {
  const host = machine({}, async () => ({ code: 0, stdout: "secret-token", stderr: "secret-too" }));
  const config = await load(
    kubeconfig("exec: { apiVersion: client.authentication.k8s.io/v1, command: get-token }"),
    host,
  );
  const given = Promise.resolve(config.credentials.current(new VirtualClock(), signal));
  const failure = (await given.catch((e: unknown) => e)) as Error;
  expect(failure).toBeInstanceOf(ConfigError);
  expect(`${failure.message} ${String(failure.cause)}`).not.toContain("secret");
});

test.each([
  ["not YAML", "a: [", /not valid YAML/],
  ["empty", "", /is empty/],
  ["no current context", "kind: Config", /current-context is missing: run `kubectl config use-context NAME`/],
  ["impersonation", kubeconfig("as: admin"), /as: impersonation is not supported/],
  [
    "an old auth provider",
    kubeconfig("auth-provider: { name: gcp }"),
    /auth-provider is no longer supported/,
  ],
  [
    "a key without certificate",
    kubeconfig(`client-key-data: ${base64(pem("KEY"))}`),
    /client-certificate is missing/,
  ],
  [
    "a missing token file",
    kubeconfig("tokenFile: /run/none"),
    /users\[me\]\.user\.tokenFile: \/run\/none does not exist/,
  ],
  ["no PEM", kubeconfig("token: a", `certificate-authority-data: ${base64("x")}`), /holds no PEM/],
  ["a proxy", kubeconfig("token: a", "proxy-url: http://proxy"), /proxy-url is not supported/],
  ["a wrong type", kubeconfig("token: 5"), /users\[me\]\.user\.token must be a text/],
  ["a bad flag", kubeconfig("token: a", "insecure-skip-tls-verify: 'no'"), /must be true or false/],
  [
    "an authority that would not be looked at",
    kubeconfig("token: a", `insecure-skip-tls-verify: true\ncertificate-authority-data: ${base64(pem("C"))}`),
    /exclude each other/,
  ],
])("%s is refused, naming file, field and remedy", async (_, text, message) => {
  await expect(load(text)).rejects.toThrow(ConfigError);
  await expect(load(text)).rejects.toThrow(message);
  await expect(load(text)).rejects.toThrow("/etc/cluster/config");
});

test("a name that leads nowhere is reported with the names that exist", async () => {
  await expect(load(kubeconfig("token: a"), machine({}), "other")).rejects.toThrow(
    'no context "other"; there are main, broken',
  );
  await expect(load(kubeconfig("token: a"), machine({}), "broken")).rejects.toThrow(
    'no cluster "two"; there are one',
  );
  await expect(loadKubeconfig(machine({}), { path: "/none" })).rejects.toThrow(
    "kubeconfig /none does not exist: check the path",
  );
});

test("inside a pod: the service account", async () => {
  const directory = "/var/run/secrets/kubernetes.io/serviceaccount";
  const files = {
    [`${directory}/token`]: "t\n",
    [`${directory}/ca.crt`]: pem("CERTIFICATE"),
    [`${directory}/namespace`]: "ns",
  };
  const environment = { KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "443" };
  const config = await inClusterConfig(machine(files), environment);
  expect(config).toMatchObject({ server: "https://[fd00::1]:443", ca: pem("CERTIFICATE"), namespace: "ns" });
  expect(await config.credentials.current(new VirtualClock(), signal)).toEqual({ authorization: "Bearer t" });
  await expect(inClusterConfig(machine({}), {})).rejects.toThrow(/not in a pod/);
  await expect(inClusterConfig(machine({}), environment)).rejects.toThrow(/token does not exist/);
});
