/** Every command of the guide to `longshore assess`, in order, on a cluster of the gallery; and what watching says. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exhibits } from "../components/migration/gallery/gallery.ts";
import { blocksOf, type CommandPlace, commandsOf, runGuideCommand } from "./support/guide-commands.ts";
import { Kubectl, kubectlOf } from "./support/kubectl.ts";
import { longshoreCommand } from "./support/test-cluster.ts";

const guide = readFileSync(new URL("../../docs/guides/assess.md", import.meta.url), "utf8");
const program = await kubectlOf("1.32");

describe.skipIf(program === undefined)("the guide to assess", () => {
  let kubectl: Kubectl;
  let place: CommandPlace;
  beforeAll(async () => {
    kubectl = await Kubectl.start(program ?? "", "1.22");
    const bin = join(kubectl.directory, "bin");
    mkdirSync(bin);
    const shim = `#!/bin/sh\n[ "$1" = longshore ] || exit 64\nshift\nexec ${longshoreCommand.join(" ")} "$@"\n`;
    writeFileSync(join(bin, "npx"), shim, { mode: 0o755 });
    const { PATH = "" } = process.env;
    const env = {
      PATH: `${bin}:${dirname(program ?? "")}:${PATH}`,
      HOME: kubectl.directory,
      KUBECONFIG: kubectl.kubeconfig,
    };
    place = { cwd: kubectl.directory, env };
    copyFileSync(kubectl.kubeconfig, join(kubectl.directory, "admin.conf"));
    writeFileSync(join(kubectl.directory, "accepted.yaml"), blocksOf(guide, "yaml")[0] ?? "");
    const objects = exhibits["aws-1.22-driver-on-two-of-three"]?.objects ?? [];
    const list = { apiVersion: "v1", kind: "List", items: objects };
    await kubectl.run("create", "namespace", "shop");
    await kubectl.run("create", "-f", await kubectl.file("objects.json", JSON.stringify(list)));
    // What has a status gets it as controllers and kubelets write it.
    for (const { kind = "", metadata, ...object } of objects) {
      const { status } = object as { readonly status?: object };
      if (status === undefined) continue;
      const where = metadata?.namespace === undefined ? [] : ["-n", metadata.namespace];
      const patch = ["--type=merge", "--subresource=status", "-p", JSON.stringify({ status })];
      await kubectl.run("patch", kind.toLowerCase(), metadata?.name ?? "", ...where, ...patch);
    }
  });
  afterAll(() => kubectl?.stop());

  test.each(commandsOf(guide))("%s", async (command) => {
    const isWatching = command.includes("--watch ");
    const { code, out, err } = await runGuideCommand(
      command,
      place,
      isWatching && command.includes("--kubeconfig") ? /says more of a code/ : undefined,
    );
    // The exit code of an assessment is its verdict; 3 is also that of a command that did not run.
    const judges = /longshore assess (?!--print)/.test(command) && !isWatching;
    expect(judges ? [1, 2] : [0], `${out}\n${err}`).toContain(code);
    const written = /-o \w+=(\S+)/.exec(command)?.[1];
    if (written !== undefined) expect(existsSync(join(kubectl.directory, written))).toBe(true);
    if (judges && !command.includes("-o ")) expect(out).toMatch(/^now {5}Kubernetes 1\.22: /);
  });

  test("watching says what has come and gone, serves figures, and ends with Ctrl-C", async () => {
    const [node = "", ...rest] = longshoreCommand;
    const watch = ["assess", "--watch", "--metrics-address", "0", "--kubeconfig", kubectl.kubeconfig];
    const child = spawn(node, [...rest, ...watch], { stdio: ["ignore", "pipe", "pipe"] });
    let out = "";
    let err = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      err += text;
    });
    try {
      const soon = { timeout: 30_000 };
      await expect.poll(() => out, soon).toContain("says more of a code");
      const at = /127\.0\.0\.1:\d+/.exec(err)?.[0];
      expect(at, err).toBeDefined();
      const figures = await (await fetch(`http://${at}/metrics`)).text();
      expect(figures).toContain('longshore_assessment_verdict{at="now",verdict="WARNINGS"} 1');
      const orphan = {
        apiVersion: "storage.k8s.io/v1",
        kind: "VolumeAttachment",
        metadata: { name: "orphan" },
        spec: { attacher: "x.csi.example", nodeName: "gone", source: { persistentVolumeName: "gone" } },
      };
      await kubectl.run("create", "-f", await kubectl.file("orphan.json", JSON.stringify(orphan)));
      await expect.poll(() => out, soon).toMatch(/^ {2}\+ LS1501 warning: VolumeAttachment orphan: /m);
      await kubectl.run("delete", "volumeattachment", "orphan");
      await expect.poll(() => out, soon).toMatch(/^ {2}- LS1501 warning: VolumeAttachment orphan: /m);
      child.kill("SIGINT");
      const [code] = (await once(child, "close")) as [number | null];
      expect(code, err).toBe(0);
    } finally {
      child.kill("SIGKILL");
    }
  });
});
