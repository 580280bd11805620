import { describe, expect, it } from 'bun:test';
import { openDeck, RAIN, SNOW } from './deck.ts';
import { settle } from './page.ts';

const STREAM = '/live/1';

async function openArriving() {
  const deck = openDeck();
  deck.player.openArriving(RAIN, STREAM);
  await settle();
  return deck;
}

/** A track of which all has arrived, and which has played until there. */
async function openArrived({ at = 12 } = {}) {
  const deck = await openArriving();
  deck.player.complete(RAIN.id);
  await deck.reach(at);
  deck.takeSources();
  return deck;
}

describe('a track that arrives', () => {
  it('plays from its stream, says that it arrives, and cannot be searched', async () => {
    const { root, audio, position, isLive, onTrack, clock } = await openArriving();
    expect([audio.src, audio.paused]).toEqual([STREAM, false]);
    expect([root.dataset['state'], isLive(), position.disabled]).toEqual(['playing', true, true]);
    expect(clock()).toBe('0:00 / 0:30');
    expect(onTrack.mock.calls).toEqual([[RAIN]]);
  });

  it('plays on from the stream when it has arrived, and can be searched', async () => {
    const { audio, player, position, isLive, takeSources } = await openArriving();
    player.complete(RAIN.id);
    expect([audio.paused, isLive(), position.disabled]).toEqual([false, false, false]);
    expect(takeSources()).toEqual([STREAM]);
  });

  it('waits where there is no stream, and plays as a file when it has arrived', async () => {
    const { audio, player, press, message, isLive } = openDeck();
    player.open(SNOW);
    await press('Listen');
    player.openArriving(RAIN, undefined);
    await settle();
    expect([audio.hasAttribute('src'), audio.paused, isLive()]).toEqual([false, true, true]);
    expect(message()).toBe('Plays as soon as it is complete.');
    player.complete(RAIN.id);
    await settle();
    expect([audio.src, audio.crossOrigin, audio.paused]).toEqual([RAIN.url, 'use-credentials', false]);
    expect([isLive(), message()]).toEqual([false, '']);
  });

  it('waits where the stream fails, and goes on as a file when it has arrived', async () => {
    const { audio, player, reach, fail, message } = await openArriving();
    await reach(4);
    await fail();
    expect(message()).toBe('Plays as soon as it is complete.');
    player.complete(RAIN.id);
    expect([audio.src, audio.currentTime, audio.paused]).toEqual([RAIN.url, 4, false]);
  });

  it('does not begin by itself when it was paused while it waited', async () => {
    const { audio, player, press, fail } = await openArriving();
    await press('Pause');
    await fail();
    player.complete(RAIN.id);
    expect([audio.src, audio.paused]).toEqual([RAIN.url, true]);
  });

  it('leaves a track alone that was opened in the meantime, whether it arrives or breaks off', async () => {
    const { audio, player, reach, drop, takeSources } = await openArriving();
    player.open(SNOW);
    player.play();
    await reach(30);
    takeSources();
    player.complete(RAIN.id);
    player.breakOff(RAIN.id);
    await drop(60);
    expect(takeSources()).toEqual([]);
    expect([audio.src, audio.currentTime, audio.paused]).toEqual([SNOW.url, 60, false]);
  });

  it('is closed when it breaks off', async () => {
    const { root, audio, player, onTrack } = await openArriving();
    player.breakOff(RAIN.id);
    await settle();
    expect([audio.hasAttribute('src'), root.dataset['state']]).toEqual([false, 'empty']);
    expect(onTrack).toHaveBeenLastCalledWith(undefined);
  });
});

describe('a track that has arrived', () => {
  it('is its file from the first search on, at that place, and goes on if it was going', async () => {
    const { audio, drop, takeSources, clock } = await openArrived();
    await drop(20);
    expect(takeSources()).toEqual([RAIN.url]);
    expect([audio.crossOrigin, audio.currentTime, audio.paused]).toEqual(['use-credentials', 20, false]);
    expect(clock()).toBe('0:20 / 0:30');
    await drop(5);
    expect(takeSources()).toEqual([]);
    expect(audio.currentTime).toBe(5);
  });

  it('stays paused when it is searched while it is paused', async () => {
    const { audio, press, drop } = await openArrived();
    await press('Pause');
    await drop(20);
    expect([audio.src, audio.currentTime, audio.paused]).toEqual([RAIN.url, 20, true]);
  });

  it('stays paused when it is searched after its end', async () => {
    const { audio, end, drop } = await openArrived();
    await end();
    await drop(20);
    expect([audio.src, audio.currentTime, audio.paused]).toEqual([RAIN.url, 20, true]);
  });

  it.each(['player', 'library'])(
    'has ended, and begins anew as its file when played in the %s',
    async (where) => {
      const { audio, player, press, end, takeSources } = await openArrived({ at: 30 });
      await end();
      if (where === 'player') await press('Listen');
      else player.play();
      expect(takeSources()).toEqual([RAIN.url]);
      expect([audio.currentTime, audio.paused]).toEqual([0, false]);
    },
  );

  it('goes on from the stream when it was only paused', async () => {
    const { audio, press, takeSources } = await openArrived();
    await press('Pause');
    await press('Listen');
    expect(takeSources()).toEqual([]);
    expect(audio.paused).toBe(false);
  });

  it('goes on as a file where the stream fails', async () => {
    const { audio, fail, message } = await openArrived();
    await fail();
    expect([audio.src, audio.currentTime, audio.paused]).toEqual([RAIN.url, 12, false]);
    expect(message()).toBe('');
  });

  it('stays paused where the stream fails while it is paused', async () => {
    const { audio, press, fail } = await openArrived();
    await press('Pause');
    await fail();
    expect([audio.src, audio.currentTime, audio.paused]).toEqual([RAIN.url, 12, true]);
  });
});
