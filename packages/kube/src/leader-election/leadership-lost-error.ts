/** The end of a leader's term. */

/** The lease may be someone else's by now: the reason of the signal given to `lead`, and of writes that come too late. */
export class LeadershipLostError extends Error {
  override readonly name = "LeadershipLostError";
  constructor(lease: string) {
    super(`leadership of lease ${lease} may have lapsed`);
  }
}
