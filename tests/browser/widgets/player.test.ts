import { describe, expect, it, spyOn } from 'bun:test';
import { openDeck, RAIN, SNOW } from './deck.ts';
import { settle, viewOf } from './page.ts';

describe('a track in the player', () => {
  it('is its whole file, asked for as it must be, and does not begin by itself', async () => {
    const { root, audio, player, position, clock, isLive, onTrack } = openDeck();
    expect(root.dataset['state']).toBe('empty');
    player.open(RAIN);
    await settle();
    expect([audio.src, audio.crossOrigin, audio.paused]).toEqual([RAIN.url, 'use-credentials', true]);
    expect(root.dataset['state']).toBe('paused');
    expect(root.textContent).toContain('Rain');
    expect(clock()).toBe('0:00 / 0:30');
    expect([position.disabled, position.max, isLive()]).toEqual([false, '30', false]);
    expect(onTrack.mock.calls).toEqual([[RAIN]]);
    player.open({ ...SNOW, crossOrigin: 'anonymous' });
    expect(audio.crossOrigin).toBe('anonymous');
  });

  it('plays on when it is opened once more', async () => {
    const { audio, player, press, reach, takeSources } = openDeck();
    player.open(RAIN);
    await press('Listen');
    await reach(12);
    player.open(RAIN);
    expect(takeSources()).toEqual([RAIN.url]);
    expect([audio.paused, audio.currentTime]).toEqual([false, 12]);
  });

  it('gives way to another one, which begins at its own beginning', async () => {
    const { root, audio, player, press, reach, clock, waveform } = openDeck();
    player.open(RAIN);
    await press('Listen');
    await reach(12);
    player.drawPeaks(RAIN.id, [1]);
    player.open(SNOW);
    await settle();
    expect([audio.src, audio.currentTime, audio.paused]).toEqual([SNOW.url, 0, true]);
    expect([clock(), root.dataset['state']]).toEqual(['0:00 / 1:30', 'paused']);
    expect(root.textContent).not.toContain('Rain');
    expect(waveform.draw).toHaveBeenLastCalledWith(undefined);
  });

  it('is played and paused with one button, which is named after what it does', async () => {
    const { root, audio, player, press } = openDeck();
    player.open(RAIN);
    await press('Listen');
    expect([audio.paused, root.dataset['state']]).toEqual([false, 'playing']);
    await press('Pause');
    expect([audio.paused, root.dataset['state']]).toEqual([true, 'paused']);
    await press('Listen');
    expect(audio.paused).toBe(false);
  });

  it('is paused when it has ended', async () => {
    const { root, player, press, end } = openDeck();
    player.open(RAIN);
    await press('Listen');
    await end();
    expect(root.dataset['state']).toBe('paused');
    await press('Listen');
    expect(root.dataset['state']).toBe('playing');
  });

  it('is closed without a trace', async () => {
    const { root, audio, player, press, onTrack, clock } = openDeck();
    player.open(RAIN);
    await press('Listen');
    player.close();
    await settle();
    expect([audio.hasAttribute('src'), audio.paused]).toEqual([false, true]);
    expect([root.dataset['state'], clock()]).toEqual(['empty', '0:00 / 0:00']);
    expect(root.textContent).not.toContain('Rain');
    expect(onTrack).toHaveBeenLastCalledWith(undefined);
  });

  it('has its own outline drawn, not one that comes too late for another', async () => {
    const { player, waveform, reach } = openDeck();
    player.open(RAIN);
    player.open(SNOW);
    await reach(45);
    waveform.draw.mockClear();
    player.drawPeaks(RAIN.id, [1]);
    expect(waveform.draw).not.toHaveBeenCalled();
    player.drawPeaks(SNOW.id, [0.5, 1]);
    expect(waveform.draw.mock.calls).toEqual([[[0.5, 1]]]);
    expect(waveform.moveTo).toHaveBeenLastCalledWith(0.5);
  });
});

describe('the time in a track', () => {
  it('is shown in clock, slider and waveform, and told to a screen reader as a clock', async () => {
    const { player, reach, clock, position, waveform } = openDeck();
    player.open(RAIN);
    await reach(12);
    expect([clock(), position.value]).toEqual(['0:12 / 0:30', '12']);
    expect(position.getAttribute('aria-valuetext')).toBe('0:12 / 0:30');
    expect(waveform.moveTo).toHaveBeenLastCalledWith(12 / 30);
  });

  it('is measured by the file once it is known, and never gets beyond its end', async () => {
    const { player, learnDuration, reach, clock, position, waveform } = openDeck();
    player.open(RAIN);
    await learnDuration(25);
    expect([clock(), position.max]).toEqual(['0:00 / 0:25', '25']);
    await learnDuration(Number.POSITIVE_INFINITY);
    await reach(31);
    expect(position.max).toBe('30');
    expect(waveform.moveTo).toHaveBeenLastCalledWith(1);
  });

  it('follows the slider while it is dragged, and the sound when it is let go', async () => {
    const { audio, player, reach, drag, drop, clock, position, takeSources } = openDeck();
    player.open(RAIN);
    await reach(2);
    await drag(20);
    expect([clock(), audio.currentTime]).toEqual(['0:20 / 0:30', 2]);
    await reach(3);
    expect([clock(), position.value]).toEqual(['0:20 / 0:30', '20']);
    await drop(21);
    expect([clock(), audio.currentTime]).toEqual(['0:21 / 0:30', 21]);
    await reach(22);
    expect(clock()).toBe('0:22 / 0:30');
    expect(takeSources()).toEqual([RAIN.url]);
  });

  it('moves the waveform with every frame while it plays, once a frame', async () => {
    const { document, audio, player, press, waveform } = openDeck();
    const frames = new Map<number, FrameRequestCallback>();
    const view = viewOf(document);
    let last = 0;
    spyOn(view, 'requestAnimationFrame').mockImplementation((callback) => {
      frames.set(++last, callback);
      return last;
    });
    spyOn(view, 'cancelAnimationFrame').mockImplementation((id) => void frames.delete(id));
    const nextFrame = () => {
      const callbacks = [...frames.values()];
      frames.clear();
      for (const callback of callbacks) callback(0);
    };
    player.open(RAIN);
    await press('Listen');
    // Two events, one after the other, with no frame between them.
    audio.pause();
    player.play();
    await settle();
    audio.currentTime = 15;
    waveform.moveTo.mockClear();
    nextFrame();
    nextFrame();
    expect(waveform.moveTo.mock.calls).toEqual([[0.5], [0.5]]);
    await press('Pause');
    nextFrame();
    expect([waveform.moveTo.mock.calls.length, frames.size]).toEqual([2, 0]);
  });
});

describe('a track that does not play', () => {
  it('because the browser wants to be asked by a person says so until it plays', async () => {
    const { audio, player, press, message } = openDeck();
    spyOn(audio, 'play').mockRejectedValueOnce(new DOMException('', 'NotAllowedError'));
    player.open(RAIN);
    player.play();
    await settle();
    expect(message()).toStartWith('Your browser did not start the sound by itself');
    await press('Listen');
    expect([message(), audio.paused]).toEqual(['', false]);
  });

  it('because another one has taken its place says nothing', async () => {
    const { audio, player, message } = openDeck();
    spyOn(audio, 'play').mockRejectedValueOnce(new DOMException('', 'AbortError'));
    player.open(RAIN);
    player.play();
    await settle();
    expect(message()).toBe('');
  });

  it.each(['player', 'library'])('for its file is loaded anew when it is played in the %s', async (where) => {
    const { audio, player, press, reach, fail, message, takeSources } = openDeck();
    player.open(RAIN);
    await press('Listen');
    await reach(12);
    await fail();
    expect(message()).toStartWith('This track does not play right now.');
    takeSources();
    if (where === 'player') await press('Listen');
    else player.play();
    await settle();
    expect(takeSources()).toEqual([RAIN.url]);
    expect([audio.currentTime, audio.paused, message()]).toEqual([12, false, '']);
  });
});
