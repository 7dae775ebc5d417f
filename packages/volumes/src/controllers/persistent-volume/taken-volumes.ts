/** Which volumes passes over claims are about to bind. */

/**
 * Keeps the workers of one process from choosing the same volume: without it all but one of them would lose with a
 * conflict. Only an economy: that a volume is bound once follows from the resource version of the write.
 */
export class TakenVolumes {
  readonly #claimByVolume = new Map<string, string>();

  /** Whether a pass over another claim binds the volume just now. */
  isTaken(volumeName: string, claimKey: string): boolean {
    return (this.#claimByVolume.get(volumeName) ?? claimKey) !== claimKey;
  }

  /**
   * Takes the volume for the claim while `work` runs.
   * @returns undefined when another claim has it
   */
  async whileTaken<T>(volumeName: string, claimKey: string, work: () => Promise<T>): Promise<T | undefined> {
    if (this.isTaken(volumeName, claimKey)) return undefined;
    this.#claimByVolume.set(volumeName, claimKey);
    try {
      return await work();
    } finally {
      this.#claimByVolume.delete(volumeName);
    }
  }
}
