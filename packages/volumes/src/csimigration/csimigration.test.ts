import { featureGates } from "@longshore/runtime";
import { migrationGates } from "@longshore/translation";
import { describe, expect, it } from "vitest";
import { specOfPersistentVolume, specOfVolume } from "../framework/volume-spec.ts";
import {
  createMigratedPluginManager,
  registeredInTreePlugins,
  SpecTranslationError,
} from "./migrated-plugin-manager.ts";
import { gateDependencyWarnings, volumeGates, withForcedMigration } from "./volume-gates.ts";

const ebs = "kubernetes.io/aws-ebs";
const gates = (values: Record<string, boolean>) => featureGates(volumeGates, values);
const ebsPV = (volumeID: string) =>
  specOfPersistentVolume({ metadata: { name: "pv" }, spec: { awsElasticBlockStore: { volumeID } } }, true);

describe("gates", () => {
  it("have the defaults of 1.20: the master switch on, every plugin off", () => {
    const { values } = gates({});
    expect(Object.keys(values).filter((name) => values[name])).toEqual([
      "CSIMigration",
      "HonorPVReclaimPolicy",
    ]);
  });

  it("exist for every plugin that can be translated", () => {
    for (const { gate, completeGate } of migrationGates) {
      expect([gate in volumeGates, completeGate in volumeGates]).toEqual([true, true]);
    }
  });

  it.each([
    [{}, []],
    [{ CSIMigrationAWS: true }, []],
    [
      { CSIMigration: false, CSIMigrationAWS: true },
      ["enabling CSIMigrationAWS requires CSIMigration to be enabled"],
    ],
    [
      { CSIMigrationGCEComplete: true },
      ["enabling CSIMigrationGCEComplete requires CSIMigrationGCE to be enabled"],
    ],
  ])("%j warns %j", (values, warnings) => {
    expect(gateDependencyWarnings(gates(values))).toEqual(warnings);
  });
});

describe("decisions", () => {
  it.each([
    [{}, false, false],
    [{ CSIMigrationAWS: true }, true, false],
    [{ CSIMigration: false, CSIMigrationAWS: true }, false, false],
    [{ CSIMigrationAWSComplete: true }, false, false],
    [{ CSIMigrationAWS: true, CSIMigrationAWSComplete: true }, true, true],
    [{ CSIMigrationGCE: true }, false, false],
  ])("%j: enabled %s, complete %s", (values, enabled, complete) => {
    const migration = createMigratedPluginManager(gates(values));
    expect(migration.isMigrationEnabledForPlugin(ebs)).toBe(enabled);
    expect(migration.isMigrationCompleteForPlugin(ebs)).toBe(complete);
    expect(migration.isMigratable(ebsPV("vol-1"))).toBe(enabled);
    expect(registeredInTreePlugins([{ pluginName: ebs }], migration)).toHaveLength(complete ? 0 : 1);
  });

  it("knows nothing of driver names, CSI volumes and sources without a plugin", () => {
    const migration = createMigratedPluginManager(gates({ CSIMigrationAWS: true }));
    expect(migration.isMigrationEnabledForPlugin("ebs.csi.aws.com")).toBe(false);
    const csi = specOfPersistentVolume(
      { spec: { csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-1" } } },
      false,
    );
    expect(migration.isMigratable(csi)).toBe(false);
    expect(migration.isMigratable(specOfVolume({ name: "v", emptyDir: {} }))).toBe(false);
  });

  it("translates a PV and an inline volume, and names what it cannot", () => {
    const migration = createMigratedPluginManager(gates({}));
    const pv = migration.translateInTreeSpecToCSI(ebsPV("aws://us-east-1a/vol-1"), "");
    expect(pv.persistentVolume?.spec?.csi?.volumeHandle).toBe("vol-1");
    expect([pv.readOnly, pv.inlineVolumeSpecForCsiMigration]).toEqual([true, false]);
    const inline = migration.translateInTreeSpecToCSI(
      specOfVolume({ name: "v", awsElasticBlockStore: { volumeID: "vol-2" } }),
      "default",
    );
    expect(inline.volume).toBeUndefined();
    expect(inline.inlineVolumeSpecForCsiMigration).toBe(true);
    expect(() => migration.translateInTreeSpecToCSI(ebsPV("aws://us-east-1a/other"), "")).toThrow(
      SpecTranslationError,
    );
  });

  it("forces the listed plugins in the OpenShift mode and nothing else", () => {
    const migration = createMigratedPluginManager(
      withForcedMigration(gates({ CSIMigration: false, CSIMigrationAWSComplete: true }), [ebs]),
    );
    expect(migration.isMigrationEnabledForPlugin(ebs)).toBe(true);
    expect(migration.isMigrationCompleteForPlugin(ebs)).toBe(false);
    expect(migration.isMigrationEnabledForPlugin("kubernetes.io/gce-pd")).toBe(false);
  });
});
