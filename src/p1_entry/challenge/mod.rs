//! What a buyer passes before a purchase token is issued (Q4): proof of work, or the shop's risk service. At `POST …/tokens` only:
//! the token is the proof, and a purchase asks nothing of it.
//!
//! Input: a sale with a challenge, the buyer, what the call shows. Output: nothing, or the refusal; of proof of work with what is to be
//! solved. Proof of work keeps nothing, the risk service's verdicts are remembered for a minute: a crash leaves nothing.

mod proof_of_work;
pub(crate) mod risk;

use crate::config::Settings;
use crate::domain::challenge::Challenge;
use crate::domain::ids::UserId;
use crate::domain::sale::Sale;
use crate::http::problem::{Kind, Problem};
use proof_of_work::ProofOfWork;
use risk::{RiskChecks, RiskSetupError, SeenCaller};

/// Puts sales' challenges to buyers. One a process.
pub(crate) struct Challenges {
    work: ProofOfWork,
    risk: RiskChecks,
}

impl Challenges {
    /// Nonces are signed with the keys of purchase tokens. Calls of the risk service run on the runtime this is called in.
    ///
    /// # Errors
    /// The address or the certificates of the risk service cannot be used.
    pub(crate) fn start(settings: &Settings) -> Result<Self, RiskSetupError> {
        let work = ProofOfWork::new(settings.p1_entry.token_secrets_in_use());
        Ok(Self { work, risk: RiskChecks::start(&settings.risk)? })
    }

    /// Whether anything is to be known of where a call comes from.
    pub(super) const fn asks_about_callers(&self) -> bool {
        self.risk.has_service()
    }

    /// Why the buyer gets no token yet, as far as no server has to be asked: a proof of work that is not there, or wrong.
    #[must_use]
    pub(super) fn unsolved(&self, sale: &Sale, buyer: &UserId, solution: Option<&str>, now_ms: i64) -> Option<Problem> {
        match sale.challenge? {
            Challenge::Pow(bits) => self.work.refusal(bits, (buyer, &sale.sale_id), solution, now_ms),
            Challenge::Hook => None,
            Challenge::Unknown => Some(Kind::Unavailable.because_both(
                "this process is too old for the challenge of this sale",
                "本进程版本过旧，不支持该活动的验证方式",
            )),
        }
    }

    /// Asks the shop's risk service about the buyer, where the sale says so.
    ///
    /// # Errors
    /// 403 when the service refuses the buyer; 503 when it did not judge and that means no.
    pub(super) async fn judge(&self, sale: &Sale, buyer: &UserId, seen: Option<&SeenCaller>) -> Result<(), Problem> {
        match sale.challenge {
            Some(Challenge::Hook) => self.risk.judge(&sale.sale_id, buyer, seen).await,
            Some(Challenge::Pow(_) | Challenge::Unknown) | None => Ok(()),
        }
    }
}
