/** Receives a track. It is bundled for a page, which then has it as `receiving`. */

import { createGatewayClient } from '../../../src/client/gateway-client.ts';
import type { GenerationProgress } from '../../../src/client/generation.ts';
import type { GenerationOrder } from '../../../src/client/generation-order.ts';

export interface ReceivingPage {
  receivedBytes: number;
  /** The states that the generation has reported, without repetitions. */
  readonly states: GenerationProgress['state'][];
  /** Returns the SHA-256 of the audio. */
  receive(baseUrl: string, order: GenerationOrder): Promise<string>;
}

const receiving: ReceivingPage = {
  receivedBytes: 0,
  states: [],
  async receive(baseUrl, order) {
    const { body } = await createGatewayClient({ baseUrl }).generate(order, {
      onProgress({ state, bytes }) {
        receiving.receivedBytes = bytes;
        if (state !== receiving.states.at(-1)) receiving.states.push(state);
      },
    });
    const hash = await crypto.subtle.digest('SHA-256', await new Response(body).arrayBuffer());
    return new Uint8Array(hash).toHex();
  },
};
Object.assign(window, { receiving });
