// SPDX-License-Identifier: Apache-2.0
#include "estimate/replay.h"

#include <algorithm>
#include <array>
#include <utility>

#include "estimate/incoming.h"
#include "estimate/period.h"
#include "estimate/stage_state.h"
#include "estimate/stretch.h"

namespace orrery::estimate {
namespace {

constexpr std::int64_t kMostRounds = 24;    // evaluated to find a period
constexpr std::size_t kStaleArrivals = 64;  // taken messages that an inbox carries along
constexpr std::size_t kMostInputs = kMostClocks + 2 * plan::kChannelCount;

class Replay {
 public:
  explicit Replay(const PreparedPlan& plan)
      : plan_(plan),
        timed_(plan.timed),
        stretches_(stretches_of(plan.timed)),
        stages_(plan.timed.roles.size()),
        spans_(plan.timed.crosses ? stages_.size() : 0) {
    contends_ = std::any_of(stretches_.begin(), stretches_.end(),
                            [](const Stretch& stretch) { return stretch.slowdown.any(); });
    congested_ = std::any_of(stretches_.begin(), stretches_.end(),
                             [](const Stretch& stretch) { return stretch.crowded; });
    messages_meet_ = congested_ || messages_matter(timed_);
  }

  Result<ReplayResult> run() {
    if (plan_.lists.repetition.length > 0) {
      skip_periods();
    }
    if (plan_.lists.repetition.omitted > 0 && !skipped_) {
      return ReplayResult{.whole = false};
    }
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      stages_[s].limit = std::ssize(plan_.lists.templates[s]);
    }
    advance_all();
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (stages_[s].next < stages_[s].limit) {
        return fail("the stages wait for one another: the step has no end");
      }
    }
    return result();
  }

 private:
  void advance_all() {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      wake(s);
    }
    while (!work_.empty()) {
      const std::size_t s = work_.take(stages_, messages_meet_);
      while (stages_[s].next < stages_[s].limit && step(s)) {
        if (messages_meet_) {  // what begins before at other stages comes first
          wake(s);
          break;
        }
      }
    }
  }

  void wake(std::size_t s) { work_.put(s, stages_); }

  /// One instance; false when it waits for another stage.
  bool step(std::size_t s) {
    Stage& stage = stages_[s];
    const int number = plan_.template_of(s, stage.next);
    const PassMap& map = *plan_.mapped(number).slowed;
    if (!stage.running && !has_messages(stage, map)) {
      return false;
    }
    const Time before = stage.clocks[kCompute];
    const Time host = stage.clocks[kHost];
    const bool alone =
        !stage.ports.busy_after(stage.clocks[kCompute]) && plan_.ahead(s, stage.next + 1).empty();
    if (!map.stepwise && !stretches_[at(number)].crowded && alone && !stage.running) {
      step_by_map(s, number);
    } else if (!step_by_node(s, number)) {
      return false;
    }
    stage.earlier = {before, stage.clocks[kCompute], host, host + map.host};
    stage.clocks[kVisible] = before;
    ++stage.next;
    ++result_.evaluated;
    return true;
  }

  /// Whether what comes before the first message of the template has arrived.
  static bool has_messages(const Stage& stage, const PassMap& map) {
    std::array<std::size_t, plan::kChannelCount> needed{};
    return std::all_of(map.receives.begin(), map.receives.begin() + map.leading, [&](int flow) {
      return ++needed[at(flow)] <= stage.inbox[at(flow)].size();
    });
  }

  void step_by_map(std::size_t s, int number) {
    Stage& stage = stages_[s];
    const PassMap& map = *plan_.mapped(number).slowed;
    std::array<Time, kMostInputs> in;
    std::size_t inputs = 0;
    for (const int clock : map.clocks) {
      in[inputs++] = std::min(stage.clocks[at(clock)], kMostTime);
    }
    Time begin = stage.clocks[kCompute];
    for (const int flow : map.receives) {
      const Time arrival = stage.inbox[at(flow)].take();
      begin = std::max(begin, arrival);
      in[inputs++] = std::min(arrival, kMostTime);
    }
    const Time compute = map.output(0, in.data());
    const Time slower = book(stage, number, begin, compute);
    for (std::size_t i = 0; timed_.crosses && i < map.spans.size(); ++i) {
      const LaneSpan& span = map.spans[i];
      spans_[s].push_back({span.lane, begin + span.begin, begin + span.end});
    }
    for (std::size_t o = 0; o < map.outputs.size(); ++o) {
      const PassMap::Output& what = map.outputs[o];
      const Time alone = o == 0 ? compute : map.output(o, in.data());
      const Time out = what.clock == kHost ? alone : alone + slower;
      if (what.clock >= 0) {
        stage.clocks[at(what.clock)] = out;
        if (contends_ && what.collective && out > stage.clocks[kCompute]) {
          stage.beside.put({stage.clocks[kCompute], out, true});
        }
      } else {
        const Time there = send(s, what.flow, what.transfer, out, out + what.work);
        Time& lane = stage.clocks[at(clock_of(timed_.message_lane))];
        lane = std::max(lane, there);
        if (what.awaited) {
          stage.clocks[kCompute] = std::max(stage.clocks[kCompute], there);
        }
        stage.sent.awaited = what.awaited;
        stage.sent.next = stage.next + 1;
      }
    }
  }

  Window window_of(int number, Time begin, Time end) const {
    const Stretch& stretch = stretches_[at(number)];
    const double share = end > begin ? std::min(1.0, stretch.work / (end - begin)) : 0;
    return {begin, end, share, stretch.slowdown};
  }

  /// Books an instance's kernels; returns by how much other communication delays their end.
  Time book(Stage& stage, int number, Time begin, Time end) {
    const PassMap& map = *plan_.mapped(number).slowed;
    begin = std::max(stage.clocks[kCompute], std::min(begin, end - map.kernels));
    Time slower{0};
    if (contends_) {
      Window window = window_of(number, begin, end);
      stage.beside.forget(stage.clocks[kCompute]);
      slower = stage.beside.delay(begin, end, window.share, window.slowdown);
      window.end += slower;
      stage.keep(window);
    }
    count(stage, map, begin, end + slower);
    return slower;
  }

  bool is_last(const Stage& stage) const {
    const auto s = static_cast<std::size_t>(&stage - stages_.data());
    return stage.next + 1 == std::ssize(plan_.lists.templates[s]);
  }

  void count(Stage& stage, const PassMap& map, Time begin, Time end) const {
    if (is_last(stage)) {
      stage.time.end = stage.clocks[kCompute];
      return;
    }
    stage.time.busy += end - begin;
    stage.time.kernels += map.kernels;
  }

  // --- messages and meetings

  /// Returns when the message is there: later when the target's port is taken.
  Time send(std::size_t s, int flow, int transfer, Time when, Time there) {
    const auto target = at(timed_.targets[s][at(flow)]);
    Stage& receiver = stages_[target];
    Inbox& inbox = receiver.inbox[at(flow)];
    if (transfer >= 0 && (messages_meet_ || receiver.ports.busy_after(when))) {
      there = std::max(there, receive_on_ports(stages_, target, {flow, when}, timed_, transfer));
    }
    if (inbox.next > kStaleArrivals) {
      inbox.compact();
    }
    stages_[s].sent = {.target = target, .number = number_of(inbox, flow), .there = there};
    inbox.arrivals.push_back(there);
    if (contends_) {
      const Communication message{when, there, false};
      stages_[s].beside.put(message);
      receiver.runs_beside(message);
    }
    wake(target);
    return there;
  }

  class Talk final : public Listener {
   public:
    Talk(Replay& replay, std::size_t s) : replay_(replay), s_(s) {}
    Time hears(const TimedNode& node) override { return replay_.hears(s_, node); }
    Time says(const TimedNode& node, Time when, Time end) override {
      return replay_.says(s_, node, when, end);
    }
    void delays(const Ports::Moved& message) override {
      put_off(replay_.stages_, s_, message, replay_.timed_.message_lane);
    }

   private:
    Replay& replay_;
    std::size_t s_;
  };

  Time hears(std::size_t s, const TimedNode& node) {
    Stage& stage = stages_[s];
    if (node.kind == TimedNode::Kind::meeting) {
      return std::exchange(stage.meeting, kNever);
    }
    Inbox& inbox = stage.inbox[at(node.flow)];
    return inbox.size() > 0 ? inbox.take() : kNever;
  }

  Time says(std::size_t s, const TimedNode& node, Time when, Time end) {
    if (node.kind == TimedNode::Kind::message) {
      return send(s, node.flow, node.transfer, when, end);
    }
    Meeting& meeting = meetings_[at(node.flow)];
    meeting.latest = std::max(meeting.latest, when);
    meeting.stages.push_back(s);
    if (std::ssize(meeting.stages) == timed_.members[at(node.flow)]) {
      for (const std::size_t member : meeting.stages) {
        stages_[member].meeting = meeting.latest;
        wake(member);
      }
      meeting = {};
    }
    return end;
  }

  bool step_by_node(std::size_t s, int number) {
    Stage& stage = stages_[s];
    const PassMap& map = *plan_.mapped(number).slowed;
    if (!stage.running) {
      begin_run(s, map);
    }
    Talk talk(*this, s);
    if (!stage.run.advance(talk, around(stage))) {
      return false;
    }
    stage.running = false;
    result_.jumped += stage.run.jumped();
    const Time end = stage.run.clocks()[kCompute];
    const Time begin = std::max(stage.clocks[kCompute], std::min(stage.ready, end - map.kernels));
    count(stage, map, begin, end);
    if (contends_) {
      stage.keep(window_of(number, begin, end));
      stage.keep_collectives();
    }
    stage.clocks = stage.run.clocks();
    if (timed_.crosses) {
      const std::vector<LaneSpan>& spans = stage.run.spans();
      spans_[s].insert(spans_[s].end(), spans.begin(), spans.end());
    }
    return true;
  }

  NodeRun::Surroundings around(Stage& stage) const {
    return {.transfers = *timed_.transfers, .beside = stage.beside_run, .ports = stage.ports};
  }

  void begin_run(std::size_t s, const PassMap& map) {
    Stage& stage = stages_[s];
    stage.begin_run(plan_.mapped(plan_.template_of(s, stage.next)).nodes, map, plan_.jumps);
    if (const auto ahead = plan_.ahead(s, stage.next + 1); !ahead.empty()) {
      const MappedTemplate& next = plan_.mapped(plan_.template_of(s, stage.next + 1));
      stage.next_run.start_ahead(next.nodes, ahead, stage.clocks[kCompute], stage.run);
      Talk talk(*this, s);
      stage.run.look_ahead(stage.ready, talk, around(stage));
    }
  }

  /// Rounds until one repeats another, then all that are like them at once.
  void skip_periods() {
    const Repetition& repetition = plan_.lists.repetition;
    const std::int64_t listed = repetition.rounds();
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      stages_[s].limit = repetition.from[s];
    }
    RoundMarks marks;
    for (std::int64_t round = 0; round < listed; ++round) {
      advance_all();
      auto mark = mark_of(stages_);
      if (!mark) {
        return;
      }
      marks.add(std::move(*mark));
      const std::int64_t length = marks.length(contends_);
      if (length > 0 && skip(marks, length, listed - round)) {
        return;
      }
      if (length > 0 || round + 1 == std::min(listed, kMostRounds)) {
        skip_alike(marks, length > 0 ? length : (marks.most_back() + 1) / 2, listed - round - 1);
        return;
      }
      for (Stage& stage : stages_) {
        stage.limit += repetition.length;
      }
    }
  }

  /// Whole periods, of which `left` rounds are listed.
  bool skip(const RoundMarks& marks, std::int64_t length, std::int64_t left) {
    const Repetition& repetition = plan_.lists.repetition;
    std::int64_t times = (left + repetition.omitted) / length;
    std::int64_t rounds = times * length - repetition.omitted;
    if (rounds >= length && !next_alike(plan_, stages_, rounds * repetition.length)) {
      --times;
      rounds -= length;
    }
    if (rounds < 0 || !next_alike(plan_, stages_, rounds * repetition.length) || !may_skip()) {
      return false;
    }
    jump(stages_, {marks.back(length), marks.back(0)}, times, rounds * repetition.length);
    skipped_ = true;
    return true;
  }

  /// All rounds but the last, of which `left` are listed, as the mean of `length` before.
  void skip_alike(const RoundMarks& marks, std::int64_t length, std::int64_t left) {
    const Repetition& repetition = plan_.lists.repetition;
    const std::int64_t rounds = std::max<std::int64_t>(0, left - 1);
    if (length == 0 || rounds + repetition.omitted == 0 || !may_skip()) {
      return;
    }
    extrapolate(stages_, {marks.back(length), marks.back(0)},
                static_cast<double>(rounds + repetition.omitted) / static_cast<double>(length),
                rounds * repetition.length);
    skipped_ = true;
    result_.exact = false;
  }

  /// Whether all stages are where the lists may lack rounds.
  bool may_skip() const {
    const Repetition& repetition = plan_.lists.repetition;
    for (std::size_t s = 0; repetition.omitted > 0 && s < stages_.size(); ++s) {
      if (stages_[s].next < repetition.from[s]) {
        return false;
      }
    }
    return true;
  }

  ReplayResult result() {
    ReplayResult& result = result_;
    result.spans = std::move(spans_);
    for (const Stage& stage : stages_) {
      for (int clock = 0; clock < kMostClocks; ++clock) {
        if (clock != kHost && clock != kVisible) {
          result.step_time = std::max(result.step_time, stage.clocks[at(clock)]);
        }
      }
      result.stages.push_back(stage.time);
    }
    return std::move(result);
  }

  const PreparedPlan& plan_;
  const TimedWorkload& timed_;
  std::vector<Stretch> stretches_;  ///< by template
  std::vector<Stage> stages_;
  std::vector<std::vector<LaneSpan>> spans_;  ///< by stage, where stages cross
  std::array<Meeting, kMeetings> meetings_;
  StageQueue work_;
  ReplayResult result_;
  bool skipped_ = false;  ///< periods
  bool contends_ = false;
  bool congested_ = false;      ///< some templates run node by node beside messages
  bool messages_meet_ = false;  ///< messages that come in share ports with one another
};

}  // namespace

Result<ReplayResult> replay(const PreparedPlan& plan) {
  return Replay(plan).run();
}

}  // namespace orrery::estimate
