import { type DeployField, DeployOptionError, type DeployOptions, RolloutError } from "@longshore/deployment";
import { Command } from "commander";
import { describe, expect, test } from "vitest";
import { UsageError } from "../exit.ts";
import { deployOptionsOf } from "./deploy-flags.ts";
import { errorInFlags, flagOf, inFlags } from "./driver-deploy-fields.ts";
import { registerDriverDeploy } from "./register-driver-deploy.ts";

/** What the flag of each field is given, if it takes anything, and what the field is then. */
const given: {
  readonly [Field in DeployField]: readonly [argument: string | undefined, value: DeployOptions[Field]];
} = {
  name: ["disk.csi.example.com", "disk.csi.example.com"],
  image: ["disk:v1", "disk:v1"],
  namespace: ["storage", "storage"],
  sidecarImage: ["longshore:v1", "longshore:v1"],
  controller: ["deployment", "deployment"],
  replicas: ["3", 3],
  attach: [undefined, true],
  resize: [undefined, true],
  snapshot: [undefined, true],
  groupSnapshot: [undefined, true],
  topology: [undefined, true],
  capacity: [undefined, true],
  healthMonitor: [undefined, true],
  modify: [undefined, true],
  nodeDeployment: [undefined, true],
  separateSidecars: [undefined, true],
  snapshotController: [undefined, true],
  nodeSelector: ["a=b,c=", { a: "b", c: "" }],
  tolerations: [":Exists", [{ operator: "Exists" }]],
  secretNamespaces: ["storage", ["storage"]],
  secretsClusterWide: [undefined, true],
  storageClasses: ["fast:type=ssd", [{ name: "fast", parameters: { type: "ssd" } }]],
  defaultClass: [undefined, true],
  reclaimPolicy: ["Retain", "Retain"],
  bindingMode: ["Immediate", "Immediate"],
  fsGroupPolicy: ["File", "File"],
  podInfo: [undefined, true],
  ephemeral: [undefined, true],
  driverArgs: ["v=1", ["v=1"]],
  controllerArgs: ["v=2", ["v=2"]],
  nodeArgs: ["v=3", ["v=3"]],
  sidecarArgs: ["v=4", ["v=4"]],
  credentialsSecret: ["cloud", "cloud"],
  controllerRoot: [undefined, true],
  hostDevices: [undefined, true],
  kubeletDir: ["/var/kubelet", "/var/kubelet"],
  imagePullPolicy: ["Always", "Always"],
  imagePullSecrets: ["registry", ["registry"]],
  driverRequests: ["cpu=1", { cpu: "1" }],
  driverLimits: ["cpu=2", { cpu: "2" }],
  sidecarRequests: ["cpu=3", { cpu: "3" }],
  sidecarLimits: ["cpu=4", { cpu: "4" }],
  kubernetesVersion: ["1.20", "1.20"],
  createNamespace: [undefined, false],
};

const driver = new Command("driver");
registerDriverDeploy(driver);
const verb = (name: string) => {
  const command = driver.commands.find((one) => one.name() === name);
  if (command === undefined) throw new Error(`no command ${name}`);
  return command;
};

describe("the table of flags", () => {
  test.each(Object.entries(given) as [DeployField, (typeof given)[DeployField]][])(
    "%s is set by its flag, and its refusal names that",
    (field, [argument, value]) => {
      const flag = flagOf[field];
      const command = verb("deploy").createCommand("deploy");
      for (const option of verb("deploy").options) command.addOption(option);
      const argv = argument === undefined ? [flag] : [`${flag}=${argument}`];
      expect(command.parseOptions(argv)).toEqual({ operands: [], unknown: [] });
      expect(deployOptionsOf(command.opts())).toHaveProperty(field, value);
      expect(errorInFlags(new DeployOptionError(field, "is wrong"))).toEqual(
        new UsageError(`${flag}: is wrong`),
      );
    },
  );

  test("has a flag for each field of a rollout, and for no other name", () => {
    const longFlags = (name: string) => verb(name).options.map(({ long }) => long);
    expect(longFlags("upgrade")).toContain(flagOf.adopt);
    expect(longFlags("remove")).toContain(flagOf.force);
    expect(Object.keys(flagOf).sort()).toEqual([...Object.keys(given), "adopt", "force"].sort());
  });
});

test.each([
  ["a field", "`groupSnapshot`: needs `snapshot`: both", "--group-snapshot: needs --snapshot: both"],
  ["a value", "use `controller: deployment`", "use --controller deployment"],
  ["an empty list", "leave out `storageClasses: []`", "leave out --no-storage-class"],
  ["what is switched off", "`attach: false`", "--no-attach"],
  ["what can only be switched off", "`createNamespace: false`", "--no-create-namespace"],
  ["other words in backticks", "`selector` and `toString`", "`selector` and `toString`"],
])("%s of a message becomes a flag", (_, message, words) => {
  expect(inFlags(message)).toBe(words);
});

test("errors of a rollout keep their cause, and others are left alone", () => {
  const cause = new Error("conflict");
  const shown = errorInFlags(new RolloutError("take it over with `adopt`", { cause }));
  expect(shown).toBeInstanceOf(RolloutError);
  expect(shown).toMatchObject({ message: "take it over with --adopt", cause });
  const other = new Error("`adopt`");
  expect(errorInFlags(other)).toBe(other);
});
