/** The forms of an upstream's data, as far as the client hands them over. */

/** What an app says about its upstream. Nothing checks it: the gateway passes the upstream's JSON on as it is. */
export interface UpstreamData {
  readonly profile: unknown;
  readonly model: unknown;
  readonly creation: unknown;
}

/** The data of the demo's upstream, which are the default, so that the first page compiles. */
export interface SandboxData extends UpstreamData {
  readonly profile: { readonly id: string; readonly name: string; readonly created_at: string };
  readonly model: {
    readonly id: string;
    readonly name: string;
    readonly modalities: readonly string[];
    readonly capabilities: readonly string[];
    /** The price of a second of audio. */
    readonly credits_per_second: number;
  };
  readonly creation: {
    readonly id: string;
    readonly generation_id: string;
    readonly status: 'ready' | 'generating';
    readonly title: string;
    readonly author: string;
    readonly model: string;
    readonly prompt: string;
    readonly music_length_ms: number;
    readonly force_instrumental: boolean;
    readonly is_public: boolean;
    readonly credits: number;
    readonly content_type: string;
    readonly size_bytes: number;
    readonly created_at: string;
  };
}
