/** What to generate. */

/** The fields of `POST /api/music/generate`. */
export interface GenerationOrder {
  /** As `models` names it. */
  readonly model: string;
  /** At most 4,100 characters. */
  readonly prompt: string;
  /** Milliseconds, from 3,000 to 600,000. */
  readonly music_length_ms: number;
  readonly force_instrumental?: boolean | undefined;
  readonly is_public?: boolean | undefined;
}

/** Without whatever else the caller's object has. */
export function copyOrder(order: GenerationOrder): GenerationOrder {
  const { model, prompt, music_length_ms, force_instrumental, is_public } = order;
  return { model, prompt, music_length_ms, force_instrumental, is_public };
}
